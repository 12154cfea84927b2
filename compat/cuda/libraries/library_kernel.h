/* SPDX-License-Identifier: Apache-2.0 */
/**
 * library_kernel.h - kernels written in C, for libraries above the runtime.
 *
 * Their work is launched as a program's kernels are: it is ordered in its stream, captured into graphs, divided over the cores, and a
 * fault in it is the stream's error. A kernel has one argument, a structure, and one thread for each block.
 */
#ifndef KL_CUDA_LIBRARY_KERNEL_H
#define KL_CUDA_LIBRARY_KERNEL_H

#include "compat/cuda/engine/engine.h"
#include "compat/cuda/include/cuda_runtime_api.h"

/** Define and register kl_kernel_NAME, which calls `run(const type *, block, blocks)`. */
#define KL_LIBRARY_KERNEL(NAME, type, run)                                                                             \
    static void NAME##_enter(const void *arguments)                                                                    \
    {                                                                                                                  \
        run(arguments, __koloBlockIdx.x, __koloGridDim.x);                                                             \
    }                                                                                                                  \
    static const struct kl_engine_parameter NAME##_parameter = {0, sizeof(type)};                                      \
    static const struct kl_engine_kernel kl_kernel_##NAME = {.name = #NAME,                                            \
                                                             .entry = NAME##_enter,                                    \
                                                             .parameters = &NAME##_parameter,                          \
                                                             .parameter_count = 1,                                     \
                                                             .max_threads = 1,                                         \
                                                             .argument_bytes = sizeof(type)};                          \
    __attribute__((constructor)) static void NAME##_register(void)                                                     \
    {                                                                                                                  \
        __koloRegisterKernel(&kl_kernel_##NAME, &kl_kernel_##NAME);                                                    \
    }

extern __thread struct kl_engine_dim __koloBlockIdx __attribute__((tls_model("initial-exec")));
extern __thread struct kl_engine_dim __koloGridDim __attribute__((tls_model("initial-exec")));

/** Launch one with `blocks` blocks; the arguments are copied. */
static inline cudaError_t kl_library_launch(const struct kl_engine_kernel *kernel, unsigned blocks, void *arguments,
                                            cudaStream_t stream)
{
    const dim3 grid = {blocks, 1, 1}, block = {1, 1, 1};
    void *list[] = {arguments};

    return cudaLaunchKernel(kernel, grid, block, list, 0, stream);
}

/** The part of `total` items that belongs to a block: from *first up to the value returned. */
static inline size_t kl_library_part(size_t total, unsigned block, unsigned blocks, size_t *first)
{
    *first = total / blocks * block + (block < total % blocks ? block : total % blocks);
    return *first + total / blocks + (block < total % blocks);
}

#endif
