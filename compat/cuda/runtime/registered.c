/* SPDX-License-Identifier: Apache-2.0 */
/**
 * registered.c - functions for objects of NVIDIA's compiler: they load, start and run, except for their kernels, which are GPU
 * machine code.
 *
 * All of it may come before main, in the order of the loader.
 * Source: the host code that nvcc 13.0 leaves with --keep.
 */
#include "base/atomic.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- kernels ---- */

struct foreign {
    const void *function;
    const char *name; /* the object's */
    void **object;
    struct foreign *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct foreign *all;

const char *kl_cudart_foreign_kernel(const void *function)
{
    const char *name = NULL;

    pthread_mutex_lock(&lock);
    for (const struct foreign *f = all; f && !name; f = f->next)
        if (f->function == function) name = f->name;
    pthread_mutex_unlock(&lock);
    return name;
}

cudaError_t kl_cudart_refuse_kernel(const char *name)
{
    static _Atomic bool said;

    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
        fprintf(stderr,
                "kolo: %s is a kernel that NVIDIA's compiler made for a GPU, and there is none: cudaLaunchKernel "
                "returns cudaErrorNoKernelImageForDevice (209). Compile the program with kolo-nvcc to run its kernels "
                "on CPUs\n",
                name);
    return cudaErrorNoKernelImageForDevice;
}

/* ---- registration ---- */

KL_CUDART_EXPORT void **__cudaRegisterFatBinary(void *binary);
KL_CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
KL_CUDART_EXPORT void __cudaUnregisterFatBinary(void **handle);
KL_CUDART_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                             void *thread, void *block, void *block_dim, void *grid_dim, int *warp);
KL_CUDART_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
                                        size_t bytes, int constant, int global);
KL_CUDART_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                               int is_extern, size_t bytes, int constant, int global);
KL_CUDART_EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes);
KL_CUDART_EXPORT char __cudaInitModule(void **handle);
KL_CUDART_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream);
KL_CUDART_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
KL_CUDART_EXPORT cudaError_t __cudaGetKernel(void **kernel, const void *host);
KL_CUDART_EXPORT cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments,
                                                size_t shared_bytes, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary)
{
    void **handle = malloc(sizeof *handle);

    if (handle) *handle = binary;
    return handle;
}
KL_CUDART_ENTRY(__cudaRegisterFatBinary);

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}
KL_CUDART_ENTRY(__cudaRegisterFatBinaryEnd);

/* The object goes, perhaps with a library that is unloaded. */
void __cudaUnregisterFatBinary(void **handle)
{
    pthread_mutex_lock(&lock);
    for (struct foreign **at = &all; *at;) {
        struct foreign *f = *at;

        if (f->object == handle) {
            *at = f->next;
            free(f);
        } else {
            at = &f->next;
        }
    }
    pthread_mutex_unlock(&lock);
    free(handle);
}
KL_CUDART_ENTRY(__cudaUnregisterFatBinary);

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *thread,
                            void *block, void *block_dim, void *grid_dim, int *warp)
{
    struct foreign *f = malloc(sizeof *f);

    (void)device, (void)limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)warp;
    if (!f) return;
    pthread_mutex_lock(&lock);
    *f = (struct foreign){.function = host, .name = name, .object = handle, .next = all};
    all = f;
    pthread_mutex_unlock(&lock);
}
KL_CUDART_ENTRY(__cudaRegisterFunction);

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern, size_t bytes,
                       int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name, (void)is_extern, (void)bytes, (void)constant, (void)global;
}
KL_CUDART_ENTRY(__cudaRegisterVar);

/* The host reads and writes it through the pointer that is given here. */
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int is_extern, size_t bytes,
                              int constant, int global)
{
    (void)handle, (void)device, (void)name, (void)is_extern, (void)constant, (void)global;
    if (!*host) *host = calloc(1, bytes ? bytes : 1);
}
KL_CUDART_ENTRY(__cudaRegisterManagedVar);

void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
    (void)handle, (void)name, (void)host, (void)bytes;
}
KL_CUDART_ENTRY(__cudaRegisterHostVar);

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}
KL_CUDART_ENTRY(__cudaInitModule);

/* ---- launches ---- */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
    return (unsigned)__koloPushLaunch((struct kl_engine_dim){grid.x, grid.y, grid.z},
                                      (struct kl_engine_dim){block.x, block.y, block.z}, shared_bytes, stream);
}
KL_CUDART_ENTRY(__cudaPushCallConfiguration);

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    struct kl_engine_dim g, b;

    if (!kl_engine_pop_launch(&g, &b, shared_bytes, stream)) return kl_cudart_done(cudaErrorMissingConfiguration);
    *grid = (dim3){g.x, g.y, g.z};
    *block = (dim3){b.x, b.y, b.z};
    return cudaSuccess;
}
KL_CUDART_ENTRY(__cudaPopCallConfiguration);

/* The handle of a kernel is the address of its host function. */
cudaError_t __cudaGetKernel(void **kernel, const void *host)
{
    *kernel = (void *)(uintptr_t)host;
    return cudaSuccess;
}
KL_CUDART_ENTRY(__cudaGetKernel);

cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                               cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
KL_CUDART_ENTRY(__cudaLaunchKernel);
