/* SPDX-License-Identifier: Apache-2.0 */
/**
 * strict.h - KOLO_CUDA_STRICT: limits of GPUs that CPUs do not have, so that a program that would hang on a GPU hangs here.
 *
 * - A device has 8 queues for each process, or CUDA_DEVICE_MAX_CONNECTIONS, up to 32. A stream belongs to one of them, and
 *   work begins in the order in which it was queued there: a stream that waits holds up the others of its queue.
 * - The blocks that run have together no more threads than the device holds; other blocks wait until some have ended.
 * - Kernels of two processes do not run on a device at once; with KOLO_CUDA_STRICT=mps they do.
 *
 * Blocking: the waits end only when other work goes on, as on a GPU.
 * Threads:  any.
 */
#ifndef KL_CUDA_STRICT_H
#define KL_CUDA_STRICT_H

#include <stdbool.h>

enum { KL_CUDA_QUEUES = 8, KL_CUDA_QUEUES_MOST = 32 };

/** Is the mode on? It is off unless KOLO_CUDA_STRICT is set to something other than 0. */
bool kl_cuda_strict(void);

/** The place of some work in its queue. Zeroed: none. */
struct kl_cuda_turn {
    struct kl_cuda_turn *next, **link; /* in the queue, until it has begun */
    int device, queue;
};

/** Take the next place in a queue of a device; `queue` is any number of a stream. */
void kl_cuda_turn_take(struct kl_cuda_turn *turn, int device, unsigned long long queue);

/** Wait until all work before it has begun. Until kl_cuda_turn_pass, it is the turn of this thread's work. */
void kl_cuda_turn_wait(struct kl_cuda_turn *turn);

/** It has begun, or will not begin: the queue goes on. Harmless if that was said. */
void kl_cuda_turn_pass(struct kl_cuda_turn *turn);

/** The work that this thread runs, a kernel or a copy, has begun: its queue does not wait for its end. */
void kl_cuda_turn_begun(void);

/** Before and after a kernel: wait until no kernel of another process runs on the device. */
void kl_cuda_strict_enter(int device);
void kl_cuda_strict_leave(int device);

/** Before and after a block of so many threads, of the `room` that a device has for threads; one block always fits. */
void kl_cuda_strict_enter_block(int device, unsigned threads, unsigned room);
void kl_cuda_strict_leave_block(int device, unsigned threads);

#endif
