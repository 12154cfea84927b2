/* SPDX-License-Identifier: Apache-2.0 */
/** pool.c - memory in stream order, and its pools. */
#include "compat/cuda/core/pool.h"

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

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
    return kl_cudart_done(kl_cuda_pool_set_access(pool, list, count));
}
KL_CUDART_ENTRY(cudaMemPoolSetAccess);

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *where)
{
    return kl_cudart_done(kl_cuda_pool_get_access(flags, pool, where));
}
KL_CUDART_ENTRY(cudaMemPoolGetAccess);

/* ---- between processes ---- */

cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
                                               unsigned int flags)
{
    return kl_cudart_done(kl_cuda_pool_export(out, pool, (int)type, flags));
}
KL_CUDART_ENTRY(cudaMemPoolExportToShareableHandle);

/* A descriptor comes as if it were an address. */
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *in, enum cudaMemAllocationHandleType type,
                                                 unsigned int flags)
{
    return kl_cudart_done(kl_cuda_pool_import(pool, (int)(uintptr_t)in, (int)type, flags));
}
KL_CUDART_ENTRY(cudaMemPoolImportFromShareableHandle);

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *out, void *ptr)
{
    return kl_cudart_done(kl_cuda_pool_export_pointer(out, ptr));
}
KL_CUDART_ENTRY(cudaMemPoolExportPointer);

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *in)
{
    return kl_cudart_done(kl_cuda_pool_import_pointer(ptr, pool, in));
}
KL_CUDART_ENTRY(cudaMemPoolImportPointer);
