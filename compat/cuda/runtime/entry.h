/* SPDX-License-Identifier: Apache-2.0 */
/**
 * entry.h - shared by the functions of libcudart: they are exported for programs of CUDA 12 and 13, and keep the thread's last
 * error.
 *
 * Programs name libcudart.so.12 or libcudart.so.13 as the version of every symbol. One file serves both: exports have the version
 * of 13, and KL_CUDART_ENTRY adds the version of 12. Where 12 has another signature, KL_CUDART_ENTRY_12 names another function.
 */
#ifndef KL_CUDART_ENTRY_H
#define KL_CUDART_ENTRY_H

#include "compat/cuda/core/state.h"
#include "compat/cuda/include/cuda_runtime_api.h"

#define KL_CUDART_EXPORT __attribute__((visibility("default")))

/* The name itself is given a version here, too: the linker takes an alias at the same address for the same symbol otherwise. */
#define KL_CUDART_ENTRY_13(name) __asm__(".symver " #name ", " #name "@@@libcudart.so.13")

/** Under the name `name` programs of CUDA 12 find `function`, which is defined in the same file. */
#define KL_CUDART_ENTRY_12(name, function)                                                                             \
    extern __typeof__(function) kl_12_##name __attribute__((alias(#function), visibility("default")));                 \
    __asm__(".symver kl_12_" #name ", " #name "@libcudart.so.12")

/** Programs of both find `name`. */
#define KL_CUDART_ENTRY(name)                                                                                          \
    KL_CUDART_ENTRY_12(name, name);                                                                                    \
    KL_CUDART_ENTRY_13(name)

/** Stream 0 for programs with a default stream of each thread. */
static inline cudaStream_t kl_cudart_own(cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

/** Keep a failure as the thread's last error; yields it. */
cudaError_t kl_cudart_done(cudaError_t rc);

/** The result of an unsupported function; logged once per process with KOLO_CUDA_DEBUG=1. */
cudaError_t kl_cudart_refuse(const char *name);

#endif
