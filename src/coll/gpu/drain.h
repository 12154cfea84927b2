/* SPDX-License-Identifier: Apache-2.0 */
/**
 * drain.h - the end of a failed communicator's work on GPUs, where processes share memory.
 *
 * Streams of a process wait for words that streams of others write, and kernels of a process use memory of others. After a
 * failure each process waits until its own streams have nothing left to do, and raises its words then: so streams of others
 * go on only when none of its kernels uses their memory any more. The process's event loop looks until that is so.
 *
 * Ownership: the owner of a drain that is not over when its last user goes is freed by the drain.
 * Threads:   any; see the owner's lock.
 */
#ifndef KL_COLL_GPU_DRAIN_H
#define KL_COLL_GPU_DRAIN_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct kl_loop;
struct kl_source;

/** An owner's work, which has begun to end. */
struct kl_gpu_drain_work {
    void *owner;
    pthread_mutex_t *lock;                /* the owner's */
    bool (*look)(void *owner, bool late); /* under lock, now and then: is it over? `late`: without other processes */
    void (*free)(void *owner);
};

/** Zeroed at first. */
struct kl_gpu_drain {
    struct kl_gpu_drain_work work;
    _Atomic uint32_t begun;
    bool over, frees; /* under the owner's lock */
    int looks;
    uint64_t deadline;
    struct kl_loop *loop;
    struct kl_source *tick;
};

/** Begin, once: true; later calls do nothing. With the owner's lock or without. */
bool kl_gpu_drain_claim(struct kl_gpu_drain *drain);

/** The one that has claimed it: look from now on. */
void kl_gpu_drain_begin(struct kl_gpu_drain *drain, const struct kl_gpu_drain_work *work);

/** The owner's last user goes. True: the owner is freed later. Under the owner's lock. */
bool kl_gpu_drain_takes(struct kl_gpu_drain *drain);

#endif
