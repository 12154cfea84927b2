/* SPDX-License-Identifier: Apache-2.0 */
/**
 * context.h - a device's primary context, which is the CUDA runtime's, and Kolo's kernels in it.
 *
 * Around Kolo's work the context is pushed, then popped: the program's current device stays as it is.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_CUDA_CONTEXT_H
#define KL_DEVICE_CUDA_CONTEXT_H

#include "device/cuda/driver.h"

enum { KL_CUDA_DEVICES = 64 };

struct kl_cuda_context {
    const struct kl_cuda_driver *driver;
    kl_cu_context handle;
    int device, processors;
    kl_cu_function *function; /* the kernels, in the order of their names */
};

/** The device's, kept until the process ends. The first call of a process loads the kernels that `names` lists. */
ncclResult_t kl_cuda_context_of(int device, const char *const *names, int nnames,
                                const struct kl_cuda_context **context);

/** The device of the thread's current context; without one 0, as in CUDA's runtime. */
int kl_cuda_current(void);

/** Make it the thread's current one, until the leave. */
ncclResult_t kl_cuda_enter(const struct kl_cuda_context *context);
void kl_cuda_leave(const struct kl_cuda_context *context);

/** Let kernels and copies of `context` access all memory of `peer` made by cudaMalloc, if that is `*possible`. */
ncclResult_t kl_cuda_enable_peer(const struct kl_cuda_context *context, const struct kl_cuda_context *peer,
                                 bool *possible);

/** Has the stream nothing left to do? True also for work that is being captured, and where there is no context or stream. */
bool kl_cuda_stream_is_idle(const struct kl_cuda_context *context, kl_cu_stream stream);

#endif
