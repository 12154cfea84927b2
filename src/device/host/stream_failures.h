/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream_failures.h - which work of a stream failed, and who is told.
 *
 * A failure belongs to the owner of the work: a communicator. As long as the owner lives, everybody who waits for that work
 * or for later work of the stream, or asks for it, is told, every time. When the owner ends, the stream is as before: who
 * waits at that moment is still told, and, where the owner ends without having told anybody (an abort), whoever comes first.
 *
 * Work is known by its ticket (stream.h): a question about everything before `end` concerns failures of tickets below it.
 * Past 16 failed owners at a time, the next ones count as ended.
 *
 * Memory order: `any` is stored with release before the work counts as finished, loaded with acquire by who waited for that.
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
    bool told;
};

enum { KL_STREAM_FAILURES = 16 };

struct kl_stream_failures {
    _Atomic uint32_t any;   /* is there something to tell? */
    _Atomic uint64_t ended; /* failures whose owners have ended, a count */
    pthread_mutex_t lock;
    /* under lock: */
    struct kl_stream_failure of[KL_STREAM_FAILURES]; /* owners that live, oldest failure first */
    int n;
    struct kl_stream_failure last; /* of an owner that has ended; code ncclSuccess: none */
    char last_text[KL_ERROR_TEXT];
};

/** Also in a forked child, where a thread that it does not have may hold the lock. */
void kl_failures_init(struct kl_stream_failures *failures);

/** Work of `owner` failed, with `text` that lives as long as the owner. The first failure of an owner counts. */
void kl_failures_add(struct kl_stream_failures *failures, const void *owner, uint64_t ticket, ncclResult_t code,
                     const char *text);

/** The owner ends. `tell`: what nobody was told yet, the next one is told. */
void kl_failures_end(struct kl_stream_failures *failures, const void *owner, bool tell);

/** To be taken before a wait, and given to the question after it. */
static inline uint64_t kl_failures_ended(struct kl_stream_failures *failures)
{
    return kl_load_acquire(&failures->ended);
}

/** What failed of the work below `end`, adopted as the calling thread's error text; ncclSuccess if nothing did. */
ncclResult_t kl_failures_ask(struct kl_stream_failures *failures, uint64_t end, uint64_t ended_before);

/** Forget all: the stream has a new user. */
void kl_failures_clear(struct kl_stream_failures *failures);

#endif
