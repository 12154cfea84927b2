/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/batch.h"

static bool is_order(enum cudaMemcpySrcAccessOrder order)
{
    return order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny;
}

static enum kl_cuda_how how_of(enum cudaMemcpySrcAccessOrder order)
{
    return order == cudaMemcpySrcAccessOrderDuringApiCall ? KL_CUDA_READ_AT_ONCE : KL_CUDA_ASYNC;
}

static cudaError_t check(const struct kl_cuda_batch *b)
{
    if (!b->count || !b->to || !b->from || !b->bytes || !b->nattributes || b->nattributes > b->count ||
        !b->attributes || !b->first || b->first[0])
        return cudaErrorInvalidValue;
    for (size_t a = 0; a < b->nattributes; a++) {
        if (b->first[a] >= b->count || (a && b->first[a] <= b->first[a - 1])) return cudaErrorInvalidValue;
        if (!is_order(b->attributes[a].srcAccessOrder)) return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static cudaError_t check_stream(cudaStream_t stream)
{
    return stream && stream != cudaStreamLegacy ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t kl_cuda_copy_batch(const struct kl_cuda_batch *b, cudaStream_t stream, size_t *failed)
{
    if (failed) *failed = SIZE_MAX;
    KL_CUDA_TRY(check_stream(stream));
    KL_CUDA_TRY(check(b));
    for (size_t i = 0, a = 0; i < b->count; i++) {
        const struct kl_cuda_box box = kl_cuda_row(b->to[i], b->from[i], b->bytes[i]);

        while (a + 1 < b->nattributes && b->first[a + 1] <= i) a++;
        cudaError_t rc = kl_cuda_copy(&box, cudaMemcpyDefault, stream, how_of(b->attributes[a].srcAccessOrder));
        if (rc && failed) *failed = i;
        if (rc) return rc;
    }
    return cudaSuccess;
}

/* ---- boxes ---- */

/* Extents of 0 mean the size of the box. */
static struct kl_cuda_volume volume(const struct cudaMemcpy3DOperand *o, struct cudaExtent e)
{
    return (struct kl_cuda_volume){.base = o->op.ptr.ptr,
                                   .pitch = o->op.ptr.rowLength ? o->op.ptr.rowLength : e.width,
                                   .height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : e.height};
}

static cudaError_t box_of(const struct cudaMemcpy3DBatchOp *op, struct kl_cuda_box *box)
{
    const struct cudaExtent e = op->extent;
    char *from, *to;

    if (op->dst.type != cudaMemcpyOperandTypePointer || op->src.type != cudaMemcpyOperandTypePointer)
        return cudaErrorNotSupported;
    if (!e.width || !e.height || !e.depth) return cudaErrorInvalidValue;
    const struct kl_cuda_volume source = volume(&op->src, e), target = volume(&op->dst, e);
    *box = (struct kl_cuda_box){
        .width = e.width, .height = e.height, .depth = e.depth, .to_pitch = target.pitch, .from_pitch = source.pitch};
    if (kl_cuda_corner(&source, box, &from, &box->from_slice) || kl_cuda_corner(&target, box, &to, &box->to_slice))
        return cudaErrorInvalidValue;
    box->from = from;
    box->to = to;
    return cudaSuccess;
}

static cudaError_t copy_one(const struct cudaMemcpy3DBatchOp *op, cudaStream_t stream)
{
    struct kl_cuda_box box;

    if (!is_order(op->srcAccessOrder)) return cudaErrorInvalidValue;
    KL_CUDA_TRY(box_of(op, &box));
    return kl_cuda_copy(&box, cudaMemcpyDefault, stream, how_of(op->srcAccessOrder));
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
