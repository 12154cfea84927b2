/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernel.h - kernels: the engine runs kernels of kolo-nvcc; other compilers' are machine code for a GPU, and refused.
 *
 * Errors:  98 no kernel, 209 one for a GPU only, 9 extents, 1 too much shared memory, 701 too many threads, 720 too many blocks.
 * Threads: any.
 */
#ifndef KL_CUDART_KERNEL_H
#define KL_CUDART_KERNEL_H

#include "compat/cuda/core/state.h"

struct kl_engine_kernel;

/** The configuration of a launch. */
struct kl_cudart_launch {
    const void *function;
    dim3 grid, block;
    void **arguments;
    size_t shared_bytes;
    bool cooperative;
    dim3 cluster; /* 0: the kernel's own */
};

/** Copy the arguments, and queue the grid. */
cudaError_t kl_cudart_launch(const struct kl_cudart_launch *launch, cudaStream_t stream);

/** The name of the kernel that other compilers' objects registered for a host function; NULL: none. */
const char *kl_cudart_foreign_kernel(const void *function);

/** Say once per process that such a kernel cannot run; yields 209. */
cudaError_t kl_cudart_refuse_kernel(const char *name);

#endif
