/* SPDX-License-Identifier: Apache-2.0 */
/** batch.c - many copies by one call. */
#include "compat/cuda/core/batch.h"

#include "compat/cuda/runtime/entry.h"

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes,
                                 cudaStream_t stream)
{
    const struct kl_cuda_batch batch = {to, from, bytes, count, attributes, first, nattributes};

    return kl_cudart_done(kl_cuda_copy_batch(&batch, stream, NULL));
}
KL_CUDART_ENTRY_13(cudaMemcpyBatchAsync);
KL_CUDART_ENTRY_12(cudaMemcpyBatchAsync_v2, cudaMemcpyBatchAsync);

static cudaError_t batch_12(void **to, void **from, size_t *bytes, size_t count,
                            struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes, size_t *failed,
                            cudaStream_t stream)
{
    const struct kl_cuda_batch batch = {to, (const void *const *)from, bytes, count, attributes, first, nattributes};

    return kl_cudart_done(kl_cuda_copy_batch(&batch, stream, failed));
}
KL_CUDART_ENTRY_12(cudaMemcpyBatchAsync, batch_12);

static cudaError_t batch_12_own(void **to, void **from, size_t *bytes, size_t count,
                                struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes,
                                size_t *failed, cudaStream_t stream)
{
    return batch_12(to, from, bytes, count, attributes, first, nattributes, failed, kl_cudart_own(stream));
}
KL_CUDART_ENTRY_12(cudaMemcpyBatchAsync_ptsz, batch_12_own);

cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list, unsigned long long flags,
                                   cudaStream_t stream)
{
    return kl_cudart_done(flags ? cudaErrorInvalidValue : kl_cuda_copy_box_batch(list, count, stream, NULL));
}
KL_CUDART_ENTRY_13(cudaMemcpy3DBatchAsync);

static cudaError_t box_batch_12(size_t count, struct cudaMemcpy3DBatchOp *list, size_t *failed,
                                unsigned long long flags, cudaStream_t stream)
{
    return kl_cudart_done(flags ? cudaErrorInvalidValue : kl_cuda_copy_box_batch(list, count, stream, failed));
}
KL_CUDART_ENTRY_12(cudaMemcpy3DBatchAsync, box_batch_12);

static cudaError_t box_batch_12_own(size_t count, struct cudaMemcpy3DBatchOp *list, size_t *failed,
                                    unsigned long long flags, cudaStream_t stream)
{
    return box_batch_12(count, list, failed, flags, kl_cudart_own(stream));
}
KL_CUDART_ENTRY_12(cudaMemcpy3DBatchAsync_ptsz, box_batch_12_own);
