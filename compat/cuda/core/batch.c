/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/batch.h"

static cudaError_t how_of(enum cudaMemcpySrcAccessOrder order, enum kl_cuda_how *how)
{
    if (order < cudaMemcpySrcAccessOrderStream || order > cudaMemcpySrcAccessOrderAny) return cudaErrorInvalidValue;
    *how = order == cudaMemcpySrcAccessOrderDuringApiCall ? KL_CUDA_READ_AT_ONCE : KL_CUDA_ASYNC;
    return cudaSuccess;
}

static cudaError_t check(const struct kl_cuda_batch *b)
{
    enum kl_cuda_how how;

    if (!b->count || !b->to || !b->from || !b->bytes || !b->nattributes || b->nattributes > b->count ||
        !b->attributes || !b->first || b->first[0])
        return cudaErrorInvalidValue;
    for (size_t a = 0; a < b->nattributes; a++) {
        if (b->first[a] >= b->count || (a && b->first[a] <= b->first[a - 1])) return cudaErrorInvalidValue;
        KL_CUDA_TRY(how_of(b->attributes[a].srcAccessOrder, &how));
    }
    return cudaSuccess;
}

static cudaError_t check_stream(cudaStream_t stream)
{
    return stream && stream != cudaStreamLegacy ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t kl_cuda_copy_batch(const struct kl_cuda_batch *b, cudaStream_t stream, size_t *failed)
{
    enum kl_cuda_how how = KL_CUDA_ASYNC;

    if (failed) *failed = SIZE_MAX;
    KL_CUDA_TRY(check_stream(stream));
    KL_CUDA_TRY(check(b));
    for (size_t i = 0, a = 0; i < b->count; i++) {
        const struct kl_cuda_box box = kl_cuda_row(b->to[i], b->from[i], b->bytes[i]);

        while (a + 1 < b->nattributes && b->first[a + 1] <= i) a++;
        how_of(b->attributes[a].srcAccessOrder, &how);
        cudaError_t rc = kl_cuda_copy(&box, cudaMemcpyDefault, stream, how);
        if (rc && failed) *failed = i;
        if (rc) return rc;
    }
    return cudaSuccess;
}

/* ---- boxes ---- */

static cudaError_t box_of(const struct cudaMemcpy3DBatchOp *op, struct kl_cuda_box *box)
{
    const struct cudaExtent e = op->extent;

    if (op->dst.type != cudaMemcpyOperandTypePointer || op->src.type != cudaMemcpyOperandTypePointer)
        return cudaErrorNotSupported;
    *box = (struct kl_cuda_box){.to = op->dst.op.ptr.ptr,
                                .from = op->src.op.ptr.ptr,
                                .width = e.width,
                                .height = e.height,
                                .depth = e.depth,
                                .to_pitch = op->dst.op.ptr.rowLength ? op->dst.op.ptr.rowLength : e.width,
                                .from_pitch = op->src.op.ptr.rowLength ? op->src.op.ptr.rowLength : e.width};
    box->to_slice = box->to_pitch * (op->dst.op.ptr.layerHeight ? op->dst.op.ptr.layerHeight : e.height);
    box->from_slice = box->from_pitch * (op->src.op.ptr.layerHeight ? op->src.op.ptr.layerHeight : e.height);
    return cudaSuccess;
}

static cudaError_t copy_one(const struct cudaMemcpy3DBatchOp *op, cudaStream_t stream)
{
    struct kl_cuda_box box;
    enum kl_cuda_how how;

    KL_CUDA_TRY(how_of(op->srcAccessOrder, &how));
    KL_CUDA_TRY(box_of(op, &box));
    return kl_cuda_copy(&box, cudaMemcpyDefault, stream, how);
}

cudaError_t kl_cuda_copy_box_batch(const struct cudaMemcpy3DBatchOp *list, size_t count, cudaStream_t stream,
                                   size_t *failed)
{
    if (failed) *failed = SIZE_MAX;
    KL_CUDA_TRY(check_stream(stream));
    if (!count || !list) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; i++) {
        cudaError_t rc = copy_one(&list[i], stream);

        if (rc && failed) *failed = i;
        if (rc) return rc;
    }
    return cudaSuccess;
}
