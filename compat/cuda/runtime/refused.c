/* SPDX-License-Identifier: Apache-2.0 */
/**
 * refused.c - functions that a program may be linked against, but that CPUs cannot do: each returns cudaErrorNotSupported.
 */
#include "compat/cuda/runtime/entry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static bool tells;

static void read_environment(void)
{
    const char *text = getenv("KOLO_CUDA_DEBUG");

    tells = text && strtol(text, NULL, 10) != 0;
}

cudaError_t kl_cudart_refuse(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_environment);
    if (tells) fprintf(stderr, "kolo: %s is not supported on CPUs: cudaErrorNotSupported\n", name);
    return kl_cudart_done(cudaErrorNotSupported);
}

/* Whatever the arguments are, they are not looked at. */
#define REFUSED(name)                                                                                                  \
    KL_CUDART_EXPORT cudaError_t name(void);                                                                           \
    cudaError_t name(void)                                                                                             \
    {                                                                                                                  \
        return kl_cudart_refuse(#name);                                                                                \
    }                                                                                                                  \
    KL_CUDART_ENTRY(name);

#undef cudaGetDeviceProperties
#include "compat/cuda/runtime/refused.inc"

/* Only in CUDA 12. */
#define REFUSED_12(name)                                                                                               \
    static cudaError_t old_##name(void)                                                                                \
    {                                                                                                                  \
        return kl_cudart_refuse(#name);                                                                                \
    }                                                                                                                  \
    KL_CUDART_ENTRY_12(name, old_##name);

#include "compat/cuda/runtime/refused_12.inc"
