/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ahead.h - this rank's data for small operations that are queued behind the current one are posted before their turn.
 *
 * An operation that waits for other ranks need not keep these from receiving this rank's data for the next ones: ranks
 * that share a core then switch once for many operations. Results come in their order.
 *
 *      from <= done <= cursor < begun <= next <= until          tasks; next - cursor <= KL_AHEAD_MOST
 *
 * Tasks between `from` and `until` are queued on one stream with nothing in between.
 *
 * Memory order: `until` is stored with release after `from` and the push; the runner of the launches loads it with
 *               acquire. `next` is a hint to the user's thread.
 * Threads:      the user's; kl_ahead_post is the runner's.
 */
#ifndef KL_COMM_AHEAD_H
#define KL_COMM_AHEAD_H

#include "base/atomic.h"
#include "os/pagemap.h"

#include <stdbool.h>
#include <stddef.h>

struct ncclComm;

enum { KL_AHEAD_MOST = 32 }; /* tasks, from the one in progress to the last posted one */

struct kl_ahead {
    bool on;                      /* constant after init */
    _Atomic uint64_t from, until; /* tasks, as above */
    _Atomic uint64_t next, pause; /* the runner's; before `pause` none is posted */

    /* the user's */
    bool suits;        /* the data of this call may be posted before its turn */
    uint32_t queueing; /* calls for which the program is assumed not to wait for each operation */
    uint32_t tries;    /* calls that assumed a waiting program */
    uint32_t calls;    /* that have only queued */

    /* the runner's */
    struct kl_pagemap pagemap;
    uint32_t pauses; /* tasks in the last pause */
    struct kl_ahead_range {
        uintptr_t at, end;
    } result[KL_AHEAD_MOST],
        results; /* destinations of tasks that are not complete, by number; and their hull since none was pending */
};

void kl_ahead_init(struct ncclComm *comm);

/* ---- in a call ---- */

/** Tasks are queued when a call adds tasks from `first` on: is it enough to queue these as well, for now? */
bool kl_ahead_just_queues(struct ncclComm *comm, uint64_t first);

/** Nothing is queued, and this call has to wait: is queueing it better than yielding the core? */
bool kl_ahead_begins_queue(struct ncclComm *comm);

/** Tasks are queued: is yielding the core better than queueing one more operation? */
bool kl_ahead_is_full(struct ncclComm *comm);

/** Tasks [first, end) were queued; `follows`: directly behind the earlier ones. */
void kl_ahead_queued(struct kl_ahead *ahead, uint64_t first, uint64_t end, bool follows);

/* ---- between calls ---- */

/** Post the data that may be posted now. True: some were. */
bool kl_ahead_post(struct ncclComm *comm);

#endif
