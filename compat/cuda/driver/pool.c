/* SPDX-License-Identifier: Apache-2.0 */
/** pool.c - pools of memory in stream order: the runtime's. */
#include "compat/cuda/core/pool.h"

#include "compat/cuda/driver/driver.h"

KL_CU_SAME_LAYOUT(CUmemPoolProps, struct cudaMemPoolProps);
KL_CU_SAME_LAYOUT(CUmemPoolPtrExportData, struct cudaMemPoolPtrExportData);
KL_CU_SAME_LAYOUT(CUmemAccessDesc, struct cudaMemAccessDesc);

static cudaMemPool_t pool_of(CUmemoryPool pool)
{
    return (cudaMemPool_t)pool;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_create((cudaMemPool_t *)pool, (const void *)properties);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_destroy(pool_of(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_trim(pool_of(pool), keep_bytes);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_set(pool_of(pool), attribute, value);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_get(pool_of(pool), attribute, value);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_set_access(pool_of(pool), (const void *)list, count);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
    enum cudaMemAccessFlags found;

    KL_CU_TRY(kl_cu_ready());
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_pool_get_access(&found, pool_of(pool), (const void *)where));
    *flags = (CUmemAccess_flags)found;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_default((cudaMemPool_t *)pool, device);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_current((cudaMemPool_t *)pool, device);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_choose(device, pool_of(pool));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    void *p;

    if (!ptr || !pool) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(kl_cuda_pool_alloc(pool_of(pool), &p, bytes, stream));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

/* ---- between processes ---- */

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type,
                                          unsigned long long flags)
{
    KL_CU_TRY(kl_cu_ready());
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)kl_cuda_pool_export(out, pool_of(pool), (int)type, 0);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *in, CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    KL_CU_TRY(kl_cu_ready());
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)kl_cuda_pool_import((cudaMemPool_t *)pool, (int)(uintptr_t)in, (int)type, 0);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_pool_export_pointer((void *)out, kl_cu_address(ptr));
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *in)
{
    void *p;

    KL_CU_TRY(kl_cu_ready());
    if (!ptr) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_pool_import_pointer(&p, pool_of(pool), (const void *)in));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
