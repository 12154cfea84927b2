/* SPDX-License-Identifier: Apache-2.0 */
/** memory.c - memory and copies: the same as the runtime's. */
#include "compat/cuda/core/memory.h"

#include "compat/cuda/core/copy.h"
#include "compat/cuda/core/ipc.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/driver/copies.h"
#include "compat/cuda/driver/driver.h"

#include <string.h>

/* ---- given and taken ---- */

static CUresult allocate(CUdeviceptr *ptr, enum kl_cuda_memory kind, size_t bytes, unsigned flags)
{
    void *p;

    if (!ptr || !bytes) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(kl_cuda_unsafe());
    KL_CU_TRY(kl_cuda_alloc(kl_cuda_current(), kind, bytes, flags, NULL, &p));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    return allocate(ptr, KL_CUDA_MEMORY_DEVICE, bytes, 0);
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
    return allocate(ptr, KL_CUDA_MEMORY_MANAGED, bytes, flags);
}

CUresult cuMemFree(CUdeviceptr ptr)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_free(kl_cu_address(ptr));
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_memory_info(kl_cuda_current(), free_bytes, total_bytes);
}

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_host_alloc(bytes, flags, ptr);
}

CUresult cuMemAllocHost(void **ptr, size_t bytes)
{
    return cuMemHostAlloc(ptr, bytes, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_host_free(ptr);
}

CUresult cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_host_register(ptr, bytes, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_host_unregister(ptr);
}

static CUresult find_host(const void *host, struct kl_cuda_range *range)
{
    KL_CU_TRY(kl_cu_enter());
    if (!kl_cuda_ranges_find(host, range)) return CUDA_ERROR_INVALID_VALUE;
    return range->kind == KL_CUDA_MEMORY_PINNED || range->kind == KL_CUDA_MEMORY_REGISTERED ? CUDA_SUCCESS
                                                                                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned int flags)
{
    struct kl_cuda_range range;

    KL_CU_TRY(find_host(host, &range));
    if (!device || flags) return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
    struct kl_cuda_range range;

    KL_CU_TRY(find_host(host, &range));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = range.flags;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
    void *p;

    if (!ptr) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(kl_cuda_pool_alloc(NULL, &p, bytes, stream));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_pool_free(kl_cu_address(ptr), stream);
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
    struct kl_cuda_range range;

    KL_CU_TRY(kl_cu_enter());
    if (!kl_cuda_ranges_find(kl_cu_address(ptr), &range)) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = (CUdeviceptr)(uintptr_t)range.base;
    if (bytes) *bytes = range.bytes;
    return CUDA_SUCCESS;
}

/* ---- copies ---- */

CUresult kl_cu_copy(void *to, const void *from, size_t bytes, int kind, CUstream stream, enum kl_cuda_how how)
{
    struct kl_cuda_box box = kl_cuda_row(to, from, bytes);

    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_copy(&box, kind, stream, how);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return kl_cu_copy(kl_cu_address(to), kl_cu_address(from), bytes, cudaMemcpyDefault, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return kl_cu_copy(kl_cu_address(to), kl_cu_address(from), bytes, cudaMemcpyDefault, stream, KL_CUDA_ASYNC);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    return kl_cu_copy(kl_cu_address(to), from, bytes, cudaMemcpyHostToDevice, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    return kl_cu_copy(to, kl_cu_address(from), bytes, cudaMemcpyDeviceToHost, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return kl_cu_copy(kl_cu_address(to), kl_cu_address(from), bytes, cudaMemcpyDeviceToDevice, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return kl_cu_copy(kl_cu_address(to), from, bytes, cudaMemcpyHostToDevice, stream, KL_CUDA_ASYNC);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return kl_cu_copy(to, kl_cu_address(from), bytes, cudaMemcpyDeviceToHost, stream, KL_CUDA_ASYNC);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return kl_cu_copy(kl_cu_address(to), kl_cu_address(from), bytes, cudaMemcpyDeviceToDevice, stream, KL_CUDA_ASYNC);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    return to_context && from_context ? cuMemcpyDtoD(to, from, bytes) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    return to_context && from_context ? cuMemcpyDtoDAsync(to, from, bytes, stream) : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- fills: so many elements ---- */

CUresult kl_cu_fill(CUdeviceptr ptr, unsigned value, int element, size_t count, CUstream stream, enum kl_cuda_how how)
{
    if (count > SIZE_MAX / 8) return CUDA_ERROR_INVALID_VALUE;
    struct kl_cuda_box box = kl_cuda_row(kl_cu_address(ptr), NULL, count * (size_t)element);

    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_fill(&box, value, element, stream, how);
}

CUresult cuMemsetD8(CUdeviceptr ptr, unsigned char value, size_t count)
{
    return kl_cu_fill(ptr, value, 1, count, NULL, KL_CUDA_SYNC);
}

CUresult cuMemsetD16(CUdeviceptr ptr, unsigned short value, size_t count)
{
    return kl_cu_fill(ptr, value, 2, count, NULL, KL_CUDA_SYNC);
}

CUresult cuMemsetD32(CUdeviceptr ptr, unsigned int value, size_t count)
{
    return kl_cu_fill(ptr, value, 4, count, NULL, KL_CUDA_SYNC);
}

CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
    return kl_cu_fill(ptr, value, 1, count, stream, KL_CUDA_ASYNC);
}

CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream)
{
    return kl_cu_fill(ptr, value, 2, count, stream, KL_CUDA_ASYNC);
}

CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned int value, size_t count, CUstream stream)
{
    return kl_cu_fill(ptr, value, 4, count, stream, KL_CUDA_ASYNC);
}

/* ---- attributes of pointers ---- */

static void store(void *to, const void *value, size_t bytes)
{
    memcpy(to, value, bytes);
}

#define STORE(type, expression)                                                                                        \
    do {                                                                                                               \
        type stored = (type)(expression);                                                                              \
        store(value, &stored, sizeof stored);                                                                          \
        return CUDA_SUCCESS;                                                                                           \
    } while (0)

static bool of_host(const struct kl_cuda_range *r)
{
    return r->kind == KL_CUDA_MEMORY_PINNED || r->kind == KL_CUDA_MEMORY_REGISTERED;
}

static CUresult attribute_of(void *value, CUpointer_attribute attribute, const void *ptr, const struct kl_cuda_range *r)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        STORE(void *, kl_cuda_primary(r->device));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        STORE(unsigned, of_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        STORE(const void *, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!of_host(r) && r->kind != KL_CUDA_MEMORY_MANAGED) return CUDA_ERROR_INVALID_VALUE;
        STORE(const void *, ptr);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        STORE(unsigned, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        STORE(unsigned long long, r->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        STORE(unsigned, r->kind == KL_CUDA_MEMORY_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        STORE(int, r->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        STORE(unsigned, r->kind == KL_CUDA_MEMORY_DEVICE);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        STORE(void *, r->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        STORE(size_t, r->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        STORE(unsigned, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        STORE(unsigned long long, r->kind == KL_CUDA_MEMORY_MAPPED ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        STORE(unsigned, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        STORE(unsigned, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        STORE(void *, kl_cuda_pool_of(ptr));
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct kl_cuda_range range;

    if (!value) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_ready());
    if (!kl_cuda_ranges_find(kl_cu_address(ptr), &range)) return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(value, attribute, kl_cu_address(ptr), &range);
}

/* Of an unknown pointer all is 0, and that is no error; but its device is -2. */
static void clear(void *value, CUpointer_attribute attribute)
{
    int nowhere = CU_DEVICE_INVALID;

    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        store(value, &nowhere, sizeof nowhere);
    else
        memset(value, 0,
               attribute == CU_POINTER_ATTRIBUTE_CONTEXT || attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                       attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                       attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                       attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE || attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
                       attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES ||
                       attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
                   ? 8
                   : 4);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values, CUdeviceptr ptr)
{
    if (!count || !attributes || !values) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_ready());
    for (unsigned i = 0; i < count; i++)
        if (cuPointerGetAttribute(values[i], attributes[i], ptr)) clear(values[i], attributes[i]);
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct kl_cuda_range range;

    KL_CU_TRY(kl_cu_ready());
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !kl_cuda_ranges_find(kl_cu_address(ptr), &range))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- other processes ---- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_ipc_memory_handle((void *)handle, kl_cu_address(ptr));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
    void *p;

    if (!ptr) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(kl_cuda_ipc_memory_open(&p, (void *)&handle, flags));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_ipc_memory_close(kl_cu_address(ptr));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_ipc_event_handle((void *)handle, event);
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_ipc_event_open(event, (void *)&handle);
}
