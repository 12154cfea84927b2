/* SPDX-License-Identifier: Apache-2.0 */
/** pool.c - memory in stream order, and its pools. */
#include "compat/cuda/core/pool.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/runtime/entry.h"

cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream)
{
    return kl_cudart_done(kl_cuda_pool_alloc(NULL, ptr, bytes, stream));
}
KL_CUDART_ENTRY(cudaMallocAsync);

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    return kl_cudart_done(kl_cuda_pool_free(ptr, stream));
}
KL_CUDART_ENTRY(cudaFreeAsync);

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    if (!pool) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(kl_cuda_pool_alloc(pool, ptr, bytes, stream));
}
KL_CUDART_ENTRY(cudaMallocFromPoolAsync);

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return kl_cudart_done(kl_cuda_pool_default(pool, device));
}
KL_CUDART_ENTRY(cudaDeviceGetDefaultMemPool);

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return kl_cudart_done(kl_cuda_pool_current(pool, device));
}
KL_CUDART_ENTRY(cudaDeviceGetMemPool);

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return kl_cudart_done(kl_cuda_pool_choose(device, pool));
}
KL_CUDART_ENTRY(cudaDeviceSetMemPool);

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    return kl_cudart_done(kl_cuda_pool_create(pool, properties));
}
KL_CUDART_ENTRY(cudaMemPoolCreate);

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return kl_cudart_done(kl_cuda_pool_destroy(pool));
}
KL_CUDART_ENTRY(cudaMemPoolDestroy);

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    return kl_cudart_done(kl_cuda_pool_trim(pool, keep_bytes));
}
KL_CUDART_ENTRY(cudaMemPoolTrimTo);

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return kl_cudart_done(kl_cuda_pool_set(pool, (int)attribute, value));
}
KL_CUDART_ENTRY(cudaMemPoolSetAttribute);

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return kl_cudart_done(kl_cuda_pool_get(pool, (int)attribute, value));
}
KL_CUDART_ENTRY(cudaMemPoolGetAttribute);

/* All memory here can be accessed from everywhere: what is asked for is checked against the topology, and given. */
static cudaError_t check_access(cudaMemPool_t pool, const struct cudaMemAccessDesc *d)
{
    int own, can;

    KL_CUDA_TRY(kl_cuda_pool_device(pool, &own));
    if (d->location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    if (d->location.id == own)
        return d->flags == cudaMemAccessFlagsProtReadWrite ? cudaSuccess : cudaErrorInvalidDevice;
    KL_CUDA_TRY(kl_cuda_peer_can(&can, d->location.id, own));
    return can || d->flags == cudaMemAccessFlagsProtNone ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
    cudaError_t rc = count && !list ? cudaErrorInvalidValue : cudaSuccess;

    for (size_t i = 0; i < count && !rc; i++) rc = check_access(pool, &list[i]);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaMemPoolSetAccess);

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *where)
{
    struct cudaMemAccessDesc d = {.flags = cudaMemAccessFlagsProtReadWrite};

    if (!flags || !where) return kl_cudart_done(cudaErrorInvalidValue);
    d.location = *where;
    cudaError_t rc = check_access(pool, &d);
    *flags = rc ? cudaMemAccessFlagsProtNone : cudaMemAccessFlagsProtReadWrite;
    return kl_cudart_done(rc == cudaErrorInvalidDevice ? cudaSuccess : rc);
}
KL_CUDART_ENTRY(cudaMemPoolGetAccess);
