/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.c - memory of devices and of the host, and attributes of pointers.
 */
#include "compat/cuda/core/memory.h"

#include "compat/cuda/core/copy.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/runtime/entry.h"

#include <string.h>

enum { PITCH = 512 };

/* ---- of devices ---- */

static cudaError_t allocate(void **ptr, enum kl_cuda_memory kind, size_t bytes, unsigned flags)
{
    if (!ptr) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    return kl_cuda_alloc(kl_cuda_current(), kind, bytes, flags, NULL, ptr);
}

cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    return kl_cudart_done(allocate(ptr, KL_CUDA_MEMORY_DEVICE, bytes, 0));
}
KL_CUDART_ENTRY(cudaMalloc);

cudaError_t cudaFree(void *ptr)
{
    return kl_cudart_done(kl_cuda_free(ptr));
}
KL_CUDART_ENTRY(cudaFree);

cudaError_t cudaMallocManaged(void **ptr, size_t bytes, unsigned int flags)
{
    if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(allocate(ptr, KL_CUDA_MEMORY_MANAGED, bytes, flags));
}
KL_CUDART_ENTRY(cudaMallocManaged);

static cudaError_t allocate_rows(void **ptr, size_t *pitch, size_t width, size_t rows)
{
    size_t row = (width + PITCH - 1) / PITCH * PITCH;

    if (!pitch || !ptr || width > SIZE_MAX / 2 || (rows && row > SIZE_MAX / 4 / rows)) return cudaErrorInvalidValue;
    KL_CUDA_TRY(allocate(ptr, KL_CUDA_MEMORY_DEVICE, row * rows, 0));
    *pitch = row;
    return cudaSuccess;
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    return kl_cudart_done(allocate_rows(ptr, pitch, width, height));
}
KL_CUDART_ENTRY(cudaMallocPitch);

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
    struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};

    if (!ptr || (extent.height && extent.depth > SIZE_MAX / extent.height))
        return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = allocate_rows(&made.ptr, &made.pitch, extent.width, extent.height * extent.depth);
    if (!rc) *ptr = made;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaMalloc3D);

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    cudaError_t rc = kl_cuda_enter();

    return kl_cudart_done(rc ? rc : kl_cuda_memory_info(kl_cuda_current(), free_bytes, total_bytes));
}
KL_CUDART_ENTRY(cudaMemGetInfo);

/* ---- of the host ---- */

cudaError_t cudaMallocHost(void **ptr, size_t bytes)
{
    return kl_cudart_done(kl_cuda_host_alloc(bytes, 0, ptr));
}
KL_CUDART_ENTRY(cudaMallocHost);

cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
    return kl_cudart_done(kl_cuda_host_alloc(bytes, flags, ptr));
}
KL_CUDART_ENTRY(cudaHostAlloc);

cudaError_t cudaFreeHost(void *ptr)
{
    return kl_cudart_done(kl_cuda_host_free(ptr));
}
KL_CUDART_ENTRY(cudaFreeHost);

cudaError_t cudaHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
    return kl_cudart_done(kl_cuda_host_register(ptr, bytes, flags));
}
KL_CUDART_ENTRY(cudaHostRegister);

cudaError_t cudaHostUnregister(void *ptr)
{
    return kl_cudart_done(kl_cuda_host_unregister(ptr));
}
KL_CUDART_ENTRY(cudaHostUnregister);

static bool find_host(void *host, struct kl_cuda_range *range)
{
    return kl_cuda_book_find(host, range) &&
           (range->kind == KL_CUDA_MEMORY_PINNED || range->kind == KL_CUDA_MEMORY_REGISTERED ||
            range->kind == KL_CUDA_MEMORY_MANAGED);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    struct kl_cuda_range range;
    cudaError_t rc = kl_cuda_enter();

    if (!rc && (!device || flags || !find_host(host, &range))) rc = cudaErrorInvalidValue;
    if (!rc) *device = host;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaHostGetDevicePointer);

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    struct kl_cuda_range range;
    cudaError_t rc = kl_cuda_enter();

    if (!rc && (!flags || !find_host(host, &range))) rc = cudaErrorInvalidValue;
    if (!rc) *flags = range.flags | cudaHostAllocMapped;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaHostGetFlags);

/* ---- attributes of pointers ---- */

static enum cudaMemoryType type_of(enum kl_cuda_memory kind)
{
    switch (kind) {
    case KL_CUDA_MEMORY_MANAGED:
        return cudaMemoryTypeManaged;
    case KL_CUDA_MEMORY_PINNED:
    case KL_CUDA_MEMORY_REGISTERED:
        return cudaMemoryTypeHost;
    default:
        return cudaMemoryTypeDevice;
    }
}

/* Only the fields that callers of all versions have room for. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    struct cudaPointerAttributes a = {.type = cudaMemoryTypeUnregistered, .device = cudaInvalidDeviceId};
    struct kl_cuda_range range;
    cudaError_t rc = kl_cuda_enter();

    if (!rc && !attributes) rc = cudaErrorInvalidValue;
    if (rc) return kl_cudart_done(rc);
    a.hostPointer = (void *)(uintptr_t)ptr;
    if (kl_cuda_book_find(ptr, &range)) {
        a.type = type_of(range.kind);
        a.device = range.device;
        a.devicePointer = a.hostPointer;
        if (a.type == cudaMemoryTypeDevice) a.hostPointer = NULL;
    }
    memcpy(attributes, &a, offsetof(struct cudaPointerAttributes, reserved));
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaPointerGetAttributes);

/* ---- managed memory: where it should be, which here is one place ---- */

static cudaError_t check_managed(const void *ptr, size_t bytes, enum cudaMemLocationType type, int id)
{
    struct kl_cuda_range range;
    const struct kl_cuda_device *d;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr || !bytes || !kl_cuda_book_find(ptr, &range) || range.kind != KL_CUDA_MEMORY_MANAGED ||
        bytes > range.bytes - (size_t)((const char *)ptr - range.base))
        return cudaErrorInvalidValue;
    switch (type) {
    case cudaMemLocationTypeDevice:
        return kl_cuda_device(id, &d);
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNuma:
    case cudaMemLocationTypeHostNumaCurrent:
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

static cudaError_t prefetch(const void *ptr, size_t bytes, struct cudaMemLocation where, cudaStream_t stream)
{
    KL_CUDA_TRY(check_managed(ptr, bytes, where.type, where.id));
    return koloStreamGetInfo(stream, NULL, NULL) ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t bytes, struct cudaMemLocation where, unsigned int flags,
                                 cudaStream_t stream)
{
    return kl_cudart_done(flags ? cudaErrorInvalidValue : prefetch(ptr, bytes, where, stream));
}

static struct cudaMemLocation location_12(int device)
{
    return (struct cudaMemLocation){
        .type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, .id = device};
}

static cudaError_t prefetch_12(const void *ptr, size_t bytes, int device, cudaStream_t stream)
{
    return kl_cudart_done(prefetch(ptr, bytes, location_12(device), stream));
}
KL_CUDART_ENTRY_12(cudaMemPrefetchAsync, prefetch_12);

static cudaError_t prefetch_12_own(const void *ptr, size_t bytes, int device, cudaStream_t stream)
{
    return prefetch_12(ptr, bytes, device, kl_cudart_own(stream));
}
KL_CUDART_ENTRY_12(cudaMemPrefetchAsync_ptsz, prefetch_12_own);
KL_CUDART_ENTRY_12(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync);
KL_CUDART_ENTRY_13(cudaMemPrefetchAsync);

static cudaError_t advise(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where)
{
    if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy) return cudaErrorInvalidValue;
    if (advice <= cudaMemAdviseUnsetReadMostly || advice == cudaMemAdviseUnsetPreferredLocation)
        where.type = cudaMemLocationTypeHost; /* the place does not count */
    return check_managed(ptr, bytes, where.type, where.id);
}

cudaError_t cudaMemAdvise(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where)
{
    return kl_cudart_done(advise(ptr, bytes, advice, where));
}

static cudaError_t advise_12(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, int device)
{
    return kl_cudart_done(advise(ptr, bytes, advice, location_12(device)));
}
KL_CUDART_ENTRY_12(cudaMemAdvise, advise_12);
KL_CUDART_ENTRY_12(cudaMemAdvise_v2, cudaMemAdvise);
KL_CUDART_ENTRY_13(cudaMemAdvise);

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t bytes, unsigned int flags)
{
    struct kl_cuda_range range;
    cudaError_t rc = kl_cuda_enter();

    if (!rc && koloStreamGetInfo(stream, NULL, NULL)) rc = cudaErrorInvalidResourceHandle;
    if (!rc && (!kl_cuda_book_find(ptr, &range) || range.kind != KL_CUDA_MEMORY_MANAGED || !flags ||
                flags > cudaMemAttachSingle || (bytes && bytes != range.bytes)))
        rc = cudaErrorInvalidValue;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamAttachMemAsync);
