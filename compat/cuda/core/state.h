/* SPDX-License-Identifier: Apache-2.0 */
/**
 * state.h - checks at the start of every call: can the process use the stand-in, the thread's device, has it failed?
 *
 * All of the stand-in's libraries share this: the thread's current context, which is the runtime's current device, and the failures of
 * kernels, which end a device for the process as CUDA's sticky errors do. Codes are the runtime's; the driver's are the same numbers.
 *
 * Fork:    a child of a process that has used the stand-in gets cudaErrorInitializationError from every call.
 * Threads: any.
 */
#ifndef KL_CUDA_STATE_H
#define KL_CUDA_STATE_H

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/result.h"
#include "include/kolo.h"

#include <stdbool.h>

/* ---- contexts ---- */

/** A context is a device, for the driver's functions. Each device has one primary context, which the runtime uses. */
struct kl_cuda_context {
    int device;
    bool primary;
    bool alive;     /* not destroyed; of a primary one: the runtime has used it since its last reset */
    unsigned count; /* of a primary one: how often it is retained */
    unsigned flags;
};

/** May calls be made (kl_cuda_ready), and the thread has a current device; returns its failure. Most calls begin with this. */
cudaError_t kl_cuda_enter(void);

/** Enter or leave a function that a stream calls. It must not call CUDA: calls that would wait for themselves return 800. */
void kl_cuda_set_in_callback(bool inside);

/** The current device of the thread; 0 if it never chose one. Does not use the device. */
int kl_cuda_current(void);

/** Make `device` current, with its primary context. Out of range: 101, and nothing changes. */
cudaError_t kl_cuda_select(int device);

/** The thread's current context; NULL: none. */
struct kl_cuda_context *kl_cuda_context(void);
struct kl_cuda_context *kl_cuda_primary(int device);

/** The runtime's first use of a device makes its primary context active, which lasts until it is reset. */
void kl_cuda_activate(int device);

/** Replace the top of the thread's stack of contexts; NULL takes it away. */
void kl_cuda_context_set(struct kl_cuda_context *context);
cudaError_t kl_cuda_context_push(struct kl_cuda_context *context);
struct kl_cuda_context *kl_cuda_context_pop(void);

/* ---- failures ---- */

/** The work of a device failed for good: every later call that concerns it returns `code`. The first counts. */
void kl_cuda_fail_device(int device, cudaError_t code);
cudaError_t kl_cuda_failure(int device);

/** The code of a refused call of kolo.h; `invalid` for ncclInvalidArgument. Failures of collectives are no refusals: see the waits below. */
cudaError_t kl_cuda_from_kolo(ncclResult_t rc, cudaError_t invalid);

/** The code of a wait or a query: work that failed is done, as a failed collective is its communicator's. */
cudaError_t kl_cuda_from_wait(ncclResult_t rc);

/** Is it forbidden by a capture to do something now that no stream orders? */
cudaError_t kl_cuda_unsafe(void);

#endif
