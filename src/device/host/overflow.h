/* SPDX-License-Identifier: Apache-2.0 */
/**
 * overflow.h - work that found no free slot in a stream, by ticket.
 *
 * Threads: any. `first` and the list behind it are read between hold and release.
 */
#ifndef KL_DEVICE_HOST_OVERFLOW_H
#define KL_DEVICE_HOST_OVERFLOW_H

#include "base/atomic.h"
#include "device/host/work.h"

#include <pthread.h>
#include <stdbool.h>

struct kl_overflow_work {
    struct kl_overflow_work *next;
    uint64_t ticket;
    struct kl_work work;
};

struct kl_overflow {
    pthread_mutex_t lock;
    struct kl_overflow_work *first;
    uint32_t n;
    _Atomic uint32_t any; /* a hint that may be read without the lock: is it non-empty? */
};

/** Empty; also in a child after fork, whichever thread held the lock. */
void kl_overflow_init(struct kl_overflow *overflow);
void kl_overflow_clear(struct kl_overflow *overflow);

/** Add a copy of `work`. False: too many, or no memory. */
bool kl_overflow_put(struct kl_overflow *overflow, uint64_t ticket, const struct kl_work *work);

void kl_overflow_hold(struct kl_overflow *overflow);
void kl_overflow_release(struct kl_overflow *overflow);

/** Remove the first; there is one, and the caller holds the lock. */
void kl_overflow_drop_first(struct kl_overflow *overflow);

#endif
