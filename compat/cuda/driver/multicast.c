/* SPDX-License-Identifier: Apache-2.0 */
/**
 * multicast.c - multicast objects: a team of devices, each of which binds memory, for instructions that access all of it.
 *
 * Source: the comments of cuda.h 13.0.
 */
#include "compat/cuda/core/multicast.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/multicast_setting.h"
#include "compat/cuda/core/multicast_table.h"
#include "compat/cuda/core/ranges.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/driver/virtual.h"

#include <fcntl.h>
#include <stdlib.h>

/* ---- create ---- */

/* Is there a device with multicast among the visible ones? */
static bool is_supported(void)
{
    const struct kl_cuda_device *d;
    int count = 0;

    if (kl_cuda_device_count(&count)) return false;
    for (int i = 0; i < count; i++)
        if (!kl_cuda_device(i, &d) && kl_cuda_multicast_supported(d)) return true;
    return false;
}

static CUresult check(const CUmulticastObjectProp *p)
{
    const struct kl_cuda_device *list;
    int count;

    KL_CU_TRY(kl_cu_ready());
    if (!is_supported()) return CUDA_ERROR_NOT_SUPPORTED;
    KL_CU_TRY(kl_cuda_host_devices(&list, &count));
    if (!p || !p->numDevices || p->numDevices > (unsigned)count || p->numDevices > KL_CUDA_DEVICES || p->flags)
        return CUDA_ERROR_INVALID_VALUE;
    return p->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED
                                                                                : CUDA_SUCCESS;
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *properties,
                                   CUmulticastGranularity_flags which)
{
    KL_CU_TRY(check(properties));
    if (!bytes || (unsigned)which > CU_MULTICAST_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
    *bytes = KL_CU_GRANULARITY;
    return CUDA_SUCCESS;
}

static struct kl_cu_allocation *make(const CUmulticastObjectProp *p)
{
    struct kl_cu_allocation *a = calloc(1, sizeof *a);
    struct kl_cuda_multicast *m = a ? kl_cuda_multicast_create(p->numDevices, p->size) : NULL;
    int fd = m ? fcntl(kl_cuda_table_fd(kl_cuda_multicast_table(m)), F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0) {
        if (m) kl_cuda_multicast_close(m);
        free(a);
        return NULL;
    }
    *a = (struct kl_cu_allocation){.fd = fd,
                                   .device = kl_cuda_current(),
                                   .bytes = p->size,
                                   .count = 1,
                                   .handles = 1,
                                   .imported = true, /* it has no memory that counts */
                                   .multicast = m,
                                   .properties = {.requestedHandleTypes = (CUmemAllocationHandleType)p->handleTypes}};
    return a;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *properties)
{
    KL_CU_TRY(check(properties));
    if (!handle || !properties->size || properties->size % KL_CU_GRANULARITY || properties->size > SIZE_MAX / 1024)
        return CUDA_ERROR_INVALID_VALUE;
    kl_cu_virtual_lock();
    struct kl_cu_allocation *a = make(properties);
    CUresult rc = a ? kl_cu_allocation_publish(a, handle) : CUDA_ERROR_OUT_OF_MEMORY;
    kl_cu_virtual_unlock();
    return rc;
}

/* ---- the team ---- */

static void release(struct kl_cu_allocation *a)
{
    kl_cu_virtual_lock();
    kl_cu_allocation_drop(a);
    kl_cu_virtual_unlock();
}

/* Hold a multicast object. */
static CUresult hold(CUmemGenericAllocationHandle handle, struct kl_cu_allocation **a)
{
    KL_CU_TRY(kl_cu_allocation_hold(handle, a));
    if ((*a)->multicast) return CUDA_SUCCESS;
    release(*a);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    const struct kl_cuda_device *d;
    struct kl_cu_allocation *a;

    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(kl_cuda_device(device, &d));
    if (!kl_cuda_multicast_supported(d)) return CUDA_ERROR_NOT_SUPPORTED;
    KL_CU_TRY(hold(handle, &a));
    CUresult rc = (CUresult)kl_cuda_table_add(kl_cuda_multicast_table(a->multicast), d->ordinal);
    release(a);
    return rc;
}

/* ---- bind ---- */

static bool fits(size_t offset, size_t bytes, size_t all)
{
    return bytes && !(bytes % KL_CU_GRANULARITY) && !(offset % KL_CU_GRANULARITY) && offset <= all &&
           bytes <= all - offset;
}

static void unbound(void *owner)
{
    kl_cu_allocation_drop(owner);
}

/* With the lock. */
static CUresult bind(struct kl_cu_allocation *object, size_t offset, struct kl_cu_allocation *memory,
                     size_t memory_offset, size_t bytes)
{
    const CUmemAllocationProp *p = &memory->properties;
    struct kl_cuda_bound_memory bound = {.fd = memory->fd,
                                         .ordinal = kl_cuda_ordinal(memory->device),
                                         .offset = memory_offset,
                                         .owner = memory,
                                         .drop = unbound};

    if (memory->multicast || !fits(memory_offset, bytes, memory->bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_DEVICE;
    if (object->properties.requestedHandleTypes && !p->requestedHandleTypes) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_multicast_bind(object->multicast, offset, bytes, &bound));
    memory->count++;
    return CUDA_SUCCESS;
}

/* Hold an object whose team is complete, and that has these bytes. */
static CUresult hold_complete(CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                              unsigned long long flags, struct kl_cu_allocation **a)
{
    KL_CU_TRY(kl_cu_ready());
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(hold(handle, a));
    CUresult rc = fits(offset, bytes, (*a)->bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = (CUresult)kl_cuda_table_wait(kl_cuda_multicast_table((*a)->multicast));
    if (!rc && !kl_cuda_multicast_ready()) rc = CUDA_ERROR_SYSTEM_NOT_READY;
    if (rc) release(*a);
    return rc;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
                            size_t memory_offset, size_t bytes, unsigned long long flags)
{
    struct kl_cu_allocation *a;

    KL_CU_TRY(hold_complete(handle, offset, bytes, flags, &a));
    kl_cu_virtual_lock();
    struct kl_cu_allocation *m = kl_cu_allocation_find(memory);
    CUresult rc = m ? bind(a, offset, m, memory_offset, bytes) : CUDA_ERROR_INVALID_VALUE;
    kl_cu_allocation_drop(a);
    kl_cu_virtual_unlock();
    return rc;
}

/* Memory of pools shares one segment, and would have to begin at a multiple of the granularity: it is refused. */
static CUresult refusal(const void *address)
{
    struct kl_cuda_range range;

    return kl_cuda_ranges_find(address, &range) && range.kind == KL_CUDA_MEMORY_POOL ? CUDA_ERROR_NOT_SUPPORTED
                                                                                     : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr ptr, size_t bytes,
                             unsigned long long flags)
{
    struct kl_cu_allocation *a;
    size_t memory_offset;

    KL_CU_TRY(hold_complete(handle, offset, bytes, flags, &a));
    kl_cu_virtual_lock();
    struct kl_cu_allocation *m = kl_cu_allocation_at(kl_cu_address(ptr), bytes, &memory_offset);
    CUresult rc = m ? bind(a, offset, m, memory_offset, bytes) : refusal(kl_cu_address(ptr));
    kl_cu_allocation_drop(a);
    kl_cu_virtual_unlock();
    return rc;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t bytes)
{
    const struct kl_cuda_device *d;
    struct kl_cu_allocation *a;

    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(kl_cuda_device(device, &d));
    KL_CU_TRY(hold(handle, &a));
    CUresult rc = fits(offset, bytes, a->bytes) ? (CUresult)kl_cuda_device_wait(device) : CUDA_ERROR_INVALID_VALUE;
    kl_cu_virtual_lock();
    if (!rc) rc = (CUresult)kl_cuda_multicast_unbind(a->multicast, d->ordinal, offset, bytes);
    kl_cu_allocation_drop(a);
    kl_cu_virtual_unlock();
    return rc;
}
