/* SPDX-License-Identifier: Apache-2.0 */
/** batch.c - many copies by one call: CUDA 12.8's form, which reports the failed copy, and CUDA 13's. */
#include "compat/cuda/core/batch.h"

#include "compat/cuda/driver/driver.h"

#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

#define EXPORT __attribute__((visibility("default")))

KL_CU_ALIKE(CUmemcpyAttributes, struct cudaMemcpyAttributes);
KL_CU_ALIKE(CUDA_MEMCPY3D_BATCH_OP, struct cudaMemcpy3DBatchOp);

EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                   CUmemcpyAttributes *attributes, size_t *first, size_t nattributes, size_t *failed,
                                   CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *first, size_t nattributes, size_t *failed,
                            CUstream stream)
{
    const struct kl_cuda_batch batch = {.to = (void *)to,
                                        .from = (void *)from,
                                        .bytes = bytes,
                                        .count = count,
                                        .attributes = (const void *)attributes,
                                        .first = first,
                                        .nattributes = nattributes};

    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_copy_batch(&batch, stream, failed);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *first, size_t nattributes, CUstream stream)
{
    return cuMemcpyBatchAsync(to, from, bytes, count, attributes, first, nattributes, NULL, stream);
}

EXPORT CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                                     unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
                              CUstream stream)
{
    KL_CU_TRY(kl_cu_enter());
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)kl_cuda_copy_box_batch((const void *)list, count, stream, failed);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream)
{
    return cuMemcpy3DBatchAsync(count, list, NULL, flags, stream);
}
