/* SPDX-License-Identifier: Apache-2.0 */
/**
 * inquest.h - the diagnosis before a stuck operation fails: which rank made another call, which is behind, which is
 * silent.
 *
 * All ranks are asked for their state (bootstrap/census.h). So all ranks report the same sentence, about the cause, and
 * not about the neighbour that failed because of it.
 *
 *      a step came that belongs to another call    held until all have told their calls, or a moment has passed
 *      a rank left that is waited for              the same
 *      nothing moves                               after two seconds, then more and more seldom: if calls differ, that is the
 *                                                  failure; else only KOLO_TIMEOUT ends it, with the chain of waiting
 *                                                  ranks
 *
 * Threads: the runner's; kl_inquest_answer may run in any.
 */
#ifndef KL_COMM_INQUEST_H
#define KL_COMM_INQUEST_H

#include "base/atomic.h"
#include "base/error.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_CALLS = 1024 }; /* remembered calls of a communicator; a power of two */

/** A collective that was called; by number, valid under tests of `collectives`. */
struct kl_called_before {
    _Atomic uint64_t what, count;
};

struct kl_inquest {
    /* sent to other ranks: written by the runner when it looks at an operation that stalls */
    _Atomic uint64_t what, count; /* its call */
    _Atomic int32_t waits_for;
    _Atomic uint64_t stalled_since; /* ns; 0: not stalled, or not noticed yet */

    /* the runner's */
    ncclResult_t held; /* the failure, unless a better reason is found; success: none */
    char text[KL_ERROR_TEXT];
    int culprit;        /* rank, of the result */
    uint64_t question;  /* number of the collective that the question is about */
    uint64_t begun;     /* ns: since when it is held */
    uint64_t asked;     /* ns: time of the last question; 0: none yet */
    uint64_t next_look; /* ns after the stall's begin */
};

struct ncclComm;

/** For kl_bootstrap_on_question: this rank's state. */
void kl_inquest_answer(void *comm, uint64_t question, unsigned char *answer);

/** Hold the thread's last failure, of code `rc` and by `culprit`, which concerns the running operation. */
void kl_inquest_hold(struct ncclComm *comm, ncclResult_t rc);

/** With one held: ncclInProgress, or the final result, with its text; then nothing is held any more. */
ncclResult_t kl_inquest_progress(struct ncclComm *comm);

/** The running operation stalls, at time `now`. As above; ncclSuccess: continue. */
ncclResult_t kl_inquest_look(struct ncclComm *comm);

/** It moves again, or has ended. */
static inline void kl_inquest_moved(struct kl_inquest *q)
{
    kl_store_relaxed(&q->stalled_since, 0);
}

#endif
