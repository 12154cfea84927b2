/* SPDX-License-Identifier: Apache-2.0 */
/** texture.c - arrays, and texture and surface objects: descriptions that kernels read (kolo_cuda/texture.h). */
#include "compat/cuda/core/memory.h"
#include "compat/cuda/runtime/array.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"

#include <stdlib.h>

/* ---- arrays ---- */

/* Channels have the same size: 8, 16 or 32 bits; 1, 2 or 4 of them. */
static bool read_format(const struct cudaChannelFormatDesc *f, struct koloCudaTexture *view)
{
    const int channels = (f->x > 0) + (f->y > 0) + (f->z > 0) + (f->w > 0);

    view->bits = f->x;
    view->channels = channels;
    view->kind = (int)f->f;
    return (f->x == 8 || f->x == 16 || f->x == 32) && channels && channels != 3 && (channels < 2 || f->y == f->x) &&
           (channels < 4 || (f->z == f->x && f->w == f->x)) && f->f >= cudaChannelFormatKindSigned &&
           f->f <= cudaChannelFormatKindFloat && (f->f != cudaChannelFormatKindFloat || f->x > 8);
}

static cudaError_t make_array(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent e,
                              unsigned flags)
{
    const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore;
    const size_t most = 1 << 20;
    struct cudaArray *a;
    void *memory;

    if (!array || !format || !e.width || e.width > most || e.height > most || e.depth > most)
        return cudaErrorInvalidValue;
    if (flags & ~known) return cudaErrorNotSupported;
    KL_CUDA_TRY(kl_cuda_enter());
    a = calloc(1, sizeof *a);
    if (!a) return cudaErrorMemoryAllocation;
    *a = (struct cudaArray){.format = *format, .extent = e, .flags = flags};
    a->view.size[0] = (int)e.width;
    a->view.size[1] = e.height ? (int)e.height : 1;
    a->view.size[2] = e.depth ? (int)e.depth : 1;
    cudaError_t rc = read_format(format, &a->view) ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
    a->view.pitch = e.width * kl_cudart_texel_bytes(&a->view);
    a->view.slice = a->view.pitch * (size_t)a->view.size[1];
    if (!rc)
        rc = kl_cuda_alloc(kl_cuda_current(), KL_CUDA_MEMORY_DEVICE, a->view.slice * (size_t)a->view.size[2], 0, NULL,
                           &memory);
    if (rc) {
        free(a);
        return rc;
    }
    a->view.base = memory;
    *array = a;
    return cudaSuccess;
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned int flags)
{
    return kl_cudart_done(make_array(array, format, (struct cudaExtent){width, height, 0}, flags));
}
KL_CUDART_ENTRY(cudaMallocArray);

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags)
{
    return kl_cudart_done(make_array(array, format, extent, flags));
}
KL_CUDART_ENTRY(cudaMalloc3DArray);

cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t rc = array ? kl_cuda_free(array->view.base) : kl_cuda_enter();

    if (!rc) free(array);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaFreeArray);

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array)
{
    if (!array) return kl_cudart_done(cudaErrorInvalidResourceHandle);
    if (format) *format = array->format;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaArrayGetInfo);

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array)
{
    if (!array || !format) return kl_cudart_done(cudaErrorInvalidValue);
    *format = array->format;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGetChannelDesc);

/* Rows of memory to or from an array, at x (bytes) and y. */
static cudaError_t copy_rows(cudaArray_const_t array, size_t x, size_t y, void *to, const void *from, size_t pitch,
                             size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream,
                             enum kl_cuda_how how)
{
    if (!array || x + width > array->view.pitch || y + height > (size_t)array->view.size[1])
        return kl_cudart_done(cudaErrorInvalidValue);
    char *inside = array->view.base + y * array->view.pitch + x;
    struct kl_cuda_box box = {.to = to ? to : inside,
                              .from = from ? from : inside,
                              .width = width,
                              .height = height,
                              .depth = 1,
                              .to_pitch = to ? pitch : array->view.pitch,
                              .from_pitch = from ? pitch : array->view.pitch};
    return kl_cudart_copy_rows(&box, kind, stream, how);
}

#define COPIES(name, own)                                                                                              \
    cudaError_t cudaMemcpy2DToArray##name(cudaArray_t array, size_t x, size_t y, const void *from, size_t pitch,       \
                                          size_t width, size_t height, enum cudaMemcpyKind kind)                       \
    {                                                                                                                  \
        if (!from) return kl_cudart_done(cudaErrorInvalidValue);                                                       \
        return copy_rows(array, x, y, NULL, from, pitch, width, height, kind, own, KL_CUDA_SYNC);                      \
    }                                                                                                                  \
    KL_CUDART_ENTRY(cudaMemcpy2DToArray##name);                                                                        \
    cudaError_t cudaMemcpy2DFromArray##name(void *to, size_t pitch, cudaArray_const_t array, size_t x, size_t y,       \
                                            size_t width, size_t height, enum cudaMemcpyKind kind)                     \
    {                                                                                                                  \
        if (!to) return kl_cudart_done(cudaErrorInvalidValue);                                                         \
        return copy_rows(array, x, y, to, NULL, pitch, width, height, kind, own, KL_CUDA_SYNC);                        \
    }                                                                                                                  \
    KL_CUDART_ENTRY(cudaMemcpy2DFromArray##name);
KL_CUDART_EXPORT cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t, size_t, size_t, const void *, size_t, size_t, size_t,
                                                      enum cudaMemcpyKind);
KL_CUDART_EXPORT cudaError_t cudaMemcpy2DFromArray_ptds(void *, size_t, cudaArray_const_t, size_t, size_t, size_t,
                                                        size_t, enum cudaMemcpyKind);
COPIES(, NULL)
COPIES(_ptds, cudaStreamPerThread)

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
KL_CUDART_ENTRY(cudaCreateChannelDesc);

/* ---- objects ---- */

static cudaError_t make_object(unsigned long long *object, const struct koloCudaTexture *view)
{
    struct koloCudaTexture *copy = malloc(sizeof *copy);

    if (!copy) return cudaErrorMemoryAllocation;
    *copy = *view;
    *object = (unsigned long long)(uintptr_t)copy;
    return cudaSuccess;
}

static cudaError_t read_resource(const struct cudaResourceDesc *r, struct koloCudaTexture *view)
{
    *view = (struct koloCudaTexture){.size = {1, 1, 1}};
    switch (r->resType) {
    case cudaResourceTypeArray:
        if (!r->res.array.array) return cudaErrorInvalidValue;
        *view = r->res.array.array->view;
        return cudaSuccess;
    case cudaResourceTypeLinear:
        if (!r->res.linear.devPtr || !read_format(&r->res.linear.desc, view)) return cudaErrorInvalidValue;
        view->base = r->res.linear.devPtr;
        view->size[0] = (int)(r->res.linear.sizeInBytes / kl_cudart_texel_bytes(view));
        return cudaSuccess;
    case cudaResourceTypePitch2D:
        if (!r->res.pitch2D.devPtr || !read_format(&r->res.pitch2D.desc, view)) return cudaErrorInvalidValue;
        view->base = r->res.pitch2D.devPtr;
        view->pitch = r->res.pitch2D.pitchInBytes;
        view->size[0] = (int)r->res.pitch2D.width;
        view->size[1] = (int)r->res.pitch2D.height;
        return cudaSuccess;
    default:
        return cudaErrorNotSupported;
    }
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *other)
{
    struct koloCudaTexture view;
    cudaError_t rc = object && resource && texture ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc && other) rc = cudaErrorNotSupported;
    if (!rc) rc = read_resource(resource, &view);
    if (rc) return kl_cudart_done(rc);
    for (int i = 0; i < 3; i++) view.address[i] = (int)texture->addressMode[i];
    for (int i = 0; i < 4; i++) view.border[i] = texture->borderColor[i];
    view.filter = (int)texture->filterMode;
    view.read_normalized = texture->readMode == cudaReadModeNormalizedFloat;
    view.normalized = texture->normalizedCoords != 0;
    if (view.filter == cudaFilterModeLinear && view.kind != cudaChannelFormatKindFloat && !view.read_normalized)
        return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(make_object(object, &view));
}
KL_CUDART_ENTRY(cudaCreateTextureObject);

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
    free((void *)(uintptr_t)object);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDestroyTextureObject);

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const struct cudaResourceDesc *resource)
{
    if (!object || !resource || resource->resType != cudaResourceTypeArray || !resource->res.array.array)
        return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(make_object(object, &resource->res.array.array->view));
}
KL_CUDART_ENTRY(cudaCreateSurfaceObject);

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
    free((void *)(uintptr_t)object);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDestroySurfaceObject);
