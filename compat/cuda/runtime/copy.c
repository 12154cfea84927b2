/* SPDX-License-Identifier: Apache-2.0 */
/**
 * copy.c - copies and fills: boxes of bytes, in a stream or on the default one.
 *
 * Synchronous functions use a stream, too: the legacy one, or with a per-thread default stream the thread's (..._ptds).
 */
#include "compat/cuda/core/copy.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/runtime/array.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"

/* ---- one row ---- */

cudaError_t kl_cudart_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream,
                           enum kl_cuda_how how)
{
    struct kl_cuda_box box = kl_cuda_row(to, from, bytes);

    return kl_cudart_done(kl_cuda_copy(&box, (int)kind, stream, how));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return kl_cudart_copy(to, from, bytes, kind, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpy);

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return kl_cudart_copy(to, from, bytes, kind, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpyAsync);

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                             cudaStream_t stream, enum kl_cuda_how how)
{
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_device(to_device, &d);

    if (!rc) rc = kl_cuda_device(from_device, &d);
    if (rc) return kl_cudart_done(rc);
    return kl_cudart_copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, how);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return copy_peer(to, to_device, from, from_device, bytes, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpyPeer);

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    return copy_peer(to, to_device, from, from_device, bytes, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpyPeerAsync);

/* ---- rows ---- */

cudaError_t kl_cudart_copy_rows(const struct kl_cuda_box *box, enum cudaMemcpyKind kind, cudaStream_t stream,
                                enum kl_cuda_how how)
{
    if (box->width > box->to_pitch || box->width > box->from_pitch) return kl_cudart_done(cudaErrorInvalidPitchValue);
    return kl_cudart_done(kl_cuda_copy(box, (int)kind, stream, how));
}

#define ROWS                                                                                                           \
    (&(struct kl_cuda_box){.to = to,                                                                                   \
                           .from = from,                                                                               \
                           .width = width,                                                                             \
                           .height = height,                                                                           \
                           .depth = 1,                                                                                 \
                           .to_pitch = to_pitch,                                                                       \
                           .from_pitch = from_pitch})

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    return kl_cudart_copy_rows(ROWS, kind, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpy2D);

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return kl_cudart_copy_rows(ROWS, kind, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpy2DAsync);

/* ---- boxes ---- */

static struct kl_cuda_volume volume(struct cudaPitchedPtr p, struct cudaPos at)
{
    return (struct kl_cuda_volume){.base = p.ptr, .pitch = p.pitch, .height = p.ysize, .x = at.x, .y = at.y, .z = at.z};
}

cudaError_t kl_cudart_box(const struct cudaMemcpy3DParms *p, struct kl_cuda_box *box)
{
    char *from, *to;

    if (!p) return cudaErrorInvalidValue;
    struct kl_cuda_volume source = volume(p->srcPtr, p->srcPos), target = volume(p->dstPtr, p->dstPos);
    struct cudaExtent e = p->extent;
    size_t texel = 1;
    if ((p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr)) return cudaErrorInvalidValue;
    (void)kl_cudart_array_volume(p->srcArray, p->srcPos, &source, &texel);
    (void)kl_cudart_array_volume(p->dstArray, p->dstPos, &target, &texel);
    e.width *= texel;
    *box = (struct kl_cuda_box){
        .width = e.width, .height = e.height, .depth = e.depth, .to_pitch = target.pitch, .from_pitch = source.pitch};
    if (!e.width || !e.height || !e.depth) return cudaSuccess;
    if (!source.base || !target.base) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_corner(&source, box, &from, &box->from_slice));
    KL_CUDA_TRY(kl_cuda_corner(&target, box, &to, &box->to_slice));
    box->from = from;
    box->to = to;
    return cudaSuccess;
}

cudaError_t kl_cudart_copy_box(const struct cudaMemcpy3DParms *p, cudaStream_t stream, enum kl_cuda_how how)
{
    struct kl_cuda_box box;
    cudaError_t rc = kl_cudart_box(p, &box);

    return kl_cudart_done(rc ? rc : kl_cuda_copy(&box, (int)p->kind, stream, how));
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *copy)
{
    return kl_cudart_copy_box(copy, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpy3D);

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream)
{
    return kl_cudart_copy_box(copy, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpy3DAsync);

cudaError_t kl_cudart_copy_box_peer(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, enum kl_cuda_how how)
{
    if (!p) return kl_cudart_done(cudaErrorInvalidValue);
    const struct cudaMemcpy3DParms same = {.srcArray = p->srcArray,
                                           .srcPos = p->srcPos,
                                           .srcPtr = p->srcPtr,
                                           .dstArray = p->dstArray,
                                           .dstPos = p->dstPos,
                                           .dstPtr = p->dstPtr,
                                           .extent = p->extent,
                                           .kind = cudaMemcpyDeviceToDevice};
    return kl_cudart_copy_box(&same, stream, how);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *copy)
{
    return kl_cudart_copy_box_peer(copy, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpy3DPeer);

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *copy, cudaStream_t stream)
{
    return kl_cudart_copy_box_peer(copy, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpy3DPeerAsync);

/* ---- fills ---- */

cudaError_t kl_cudart_fill(void *ptr, int value, size_t bytes, cudaStream_t stream, enum kl_cuda_how how)
{
    struct kl_cuda_box box = kl_cuda_row(ptr, NULL, bytes);

    return kl_cudart_done(kl_cuda_fill(&box, (unsigned)value & 0xff, 1, stream, how));
}

cudaError_t cudaMemset(void *ptr, int value, size_t bytes)
{
    return kl_cudart_fill(ptr, value, bytes, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemset);

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream)
{
    return kl_cudart_fill(ptr, value, bytes, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemsetAsync);

cudaError_t kl_cudart_fill_box(struct cudaPitchedPtr p, int value, struct cudaExtent e, cudaStream_t stream,
                               enum kl_cuda_how how)
{
    struct kl_cuda_box box = {.width = e.width, .height = e.height, .depth = e.depth, .to_pitch = p.pitch};
    const struct kl_cuda_volume whole = volume(p, (struct cudaPos){0});
    char *to = NULL;
    cudaError_t rc = kl_cuda_corner(&whole, &box, &to, &box.to_slice);

    box.to = to;
    return kl_cudart_done(rc ? rc : kl_cuda_fill(&box, (unsigned)value & 0xff, 1, stream, how));
}

#define PLANE                                                                                                          \
    (struct cudaPitchedPtr)                                                                                            \
    {                                                                                                                  \
        .ptr = ptr, .pitch = pitch, .ysize = height                                                                    \
    }
#define FLAT                                                                                                           \
    (struct cudaExtent)                                                                                                \
    {                                                                                                                  \
        .width = width, .height = height, .depth = 1                                                                   \
    }

cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
    return kl_cudart_fill_box(PLANE, value, FLAT, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemset2D);

cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return kl_cudart_fill_box(PLANE, value, FLAT, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemset2DAsync);

cudaError_t cudaMemset3D(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent)
{
    return kl_cudart_fill_box(ptr, value, extent, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemset3D);

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent, cudaStream_t stream)
{
    return kl_cudart_fill_box(ptr, value, extent, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemset3DAsync);
