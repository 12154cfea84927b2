/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream_failures.h - failed work of a stream, and the reporting of it.
 *
 * A failure belongs to the owner of the work: a communicator. As long as the owner lives, every wait and query for that
 * work or for later work of the stream returns it. When the owner ends, the stream is clean again: waits in progress
 * still return it, and, if the owner ends without having reported it (an abort), the next query does.
 *
 * Work is identified by its ticket (stream.h): a query about all work before `end` concerns failures of tickets below
 * it. Past 16 failed owners at a time, the next ones count as ended.
 *
 * Memory order: `any` is stored with release before the work counts as finished, loaded with acquire after a wait for
 *               it.
 * Threads:      any.
 */
#ifndef KL_DEVICE_HOST_STREAM_FAILURES_H
#define KL_DEVICE_HOST_STREAM_FAILURES_H

#include "base/atomic.h"
#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct kl_stream_failure {
    const void *owner;
    const char *text; /* the owner's: lives as long */
    ncclResult_t code;
    uint64_t ticket; /* of its first work that failed */
    bool reported;
};

enum { KL_STREAM_FAILURES = 16 };

struct kl_stream_failures {
    _Atomic uint32_t any;   /* is there a failure to report? */
    _Atomic uint64_t ended; /* number of failures whose owners have ended */
    pthread_mutex_t lock;
    /* under lock: */
    struct kl_stream_failure of[KL_STREAM_FAILURES]; /* of live owners, oldest failure first */
    int n;
    struct kl_stream_failure last; /* of an owner that has ended; code ncclSuccess: none */
    char last_text[KL_ERROR_TEXT];
};

/** Also in a forked child, where a thread that does not exist there may hold the lock. */
void kl_failures_init(struct kl_stream_failures *failures);

/** Work of `owner` failed, with `text` that lives as long as the owner. Only an owner's first failure counts. */
void kl_failures_add(struct kl_stream_failures *failures, const void *owner, uint64_t ticket, ncclResult_t code,
                     const char *text);

/** The owner ends. `tell`: failures that were not reported yet are reported by the next query. */
void kl_failures_end(struct kl_stream_failures *failures, const void *owner, bool tell);

/** Read before a wait, and passed to the query after it. */
static inline uint64_t kl_failures_ended(struct kl_stream_failures *failures)
{
    return kl_load_acquire(&failures->ended);
}

/** The failure of the work below `end`, adopted as the calling thread's error text; ncclSuccess if there is none. */
ncclResult_t kl_failures_query(struct kl_stream_failures *failures, uint64_t end, uint64_t ended_before);

/** Remove all: the stream has a new user. */
void kl_failures_clear(struct kl_stream_failures *failures);

#endif
