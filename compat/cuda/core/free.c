/* SPDX-License-Identifier: Apache-2.0 */
/** free.c - the end of memory, one piece or all of a device: also of memory that pools have. */
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/core/stream.h"

#define KIND(kind) (1u << KL_CUDA_MEMORY_##kind)

cudaError_t kl_cuda_free(void *ptr)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr) return cudaSuccess;
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (!kl_cuda_ranges_find(ptr, &range) || range.base != ptr) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_device_wait(range.device));
    if (range.kind == KL_CUDA_MEMORY_POOL) return kl_cuda_pool_free_now(ptr);
    if (!kl_cuda_ranges_remove(ptr, KIND(DEVICE) | KIND(MANAGED), &range)) return cudaErrorInvalidValue;
    kl_cuda_release(&range);
    return cudaSuccess;
}

void kl_cuda_memory_reset(int device)
{
    const unsigned kinds = KIND(DEVICE) | KIND(MANAGED) | KIND(PINNED) | KIND(REGISTERED);
    struct kl_cuda_range range;
    char *at = NULL;

    while (kl_cuda_ranges_next(at, &range)) {
        at = range.base;
        if (range.device != device) continue;
        if (range.kind == KL_CUDA_MEMORY_POOL)
            kl_cuda_pool_free_now(range.base);
        else if (kl_cuda_ranges_remove(range.base, kinds, &range))
            kl_cuda_release(&range);
    }
    kl_cuda_pools_reset(device);
}
