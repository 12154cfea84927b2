/* SPDX-License-Identifier: Apache-2.0 */
/**
 * virtual.c - memory and addresses apart: a handle is a segment, a reservation a range of addresses, and mapping joins them.
 *
 * Created memory counts for its device until its last handle and mapping are gone. A multicast object (multicast.c) is a handle
 * as well; where it is mapped, the addresses stay without memory.
 */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/multicast.h"
#include "compat/cuda/core/multicast_table.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/driver/virtual.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of an allocation, at an address: the owner of a range in the book. */
struct mapping {
    struct kl_cu_allocation *of;
    size_t offset;                             /* in it */
    unsigned char access[KL_CUDA_DEVICES + 1]; /* CU_MEM_ACCESS_FLAGS_* of each device, and of the host */
};

struct reservation {
    char *base;
    size_t bytes;
    struct reservation *next;
};

static const unsigned mapped_kinds = 1u << KL_CUDA_MEMORY_MAPPED | 1u << KL_CUDA_MEMORY_MULTICAST;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;

/* ---- allocations ---- */

void kl_cu_virtual_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kl_cu_virtual_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct kl_cu_allocation *kl_cu_allocation_find(CUmemGenericAllocationHandle handle)
{
    return kl_cuda_handle_find(KL_CUDA_ALLOCATION, (void *)(uintptr_t)handle);
}

void kl_cu_allocation_drop(struct kl_cu_allocation *a)
{
    if (--a->count) return;
    if (a->handle) kl_cuda_handle_take(KL_CUDA_ALLOCATION, a->handle);
    if (a->multicast) kl_cuda_multicast_close(a->multicast);
    close(a->fd);
    if (!a->imported) kl_cuda_count(a->device, -(int64_t)a->bytes);
    free(a);
}

CUresult kl_cu_allocation_hold(CUmemGenericAllocationHandle handle, struct kl_cu_allocation **a)
{
    pthread_mutex_lock(&lock);
    *a = kl_cu_allocation_find(handle);
    if (*a) (*a)->count++;
    pthread_mutex_unlock(&lock);
    return *a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const CUmemAllocationProp *p)
{
    const struct kl_cuda_device *d;

    if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (p->location.type == CU_MEM_LOCATION_TYPE_DEVICE) return (CUresult)kl_cuda_device(p->location.id, &d);
    return p->location.type == CU_MEM_LOCATION_TYPE_HOST || p->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags which)
{
    KL_CU_TRY(kl_cu_ready());
    if (!bytes || (unsigned)which > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(check(properties));
    *bytes = KL_CU_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult kl_cu_allocation_publish(struct kl_cu_allocation *a, CUmemGenericAllocationHandle *handle)
{
    a->handle = kl_cuda_handle_make(KL_CUDA_ALLOCATION, a);
    if (!a->handle) {
        kl_cu_allocation_drop(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uintptr_t)a->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    KL_CU_TRY(kl_cu_ready());
    if (!handle || !bytes || bytes % KL_CU_GRANULARITY || flags) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(check(properties));
    bool of_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    int device = of_device ? properties->location.id : 0;
    if (bytes > INT64_MAX / 2 || (of_device && !kl_cuda_count(device, (int64_t)bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
    struct kl_cu_allocation *a = calloc(1, sizeof *a);
    int fd = a ? memfd_create("kolo-cuda", MFD_CLOEXEC) : -1;
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
        if (fd >= 0) close(fd);
        free(a);
        if (of_device) kl_cuda_count(device, -(int64_t)bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *a = (struct kl_cu_allocation){.fd = fd,
                                   .device = device,
                                   .bytes = bytes,
                                   .count = 1,
                                   .handles = 1,
                                   .imported = !of_device,
                                   .properties = *properties};
    return kl_cu_allocation_publish(a, handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    KL_CU_TRY(kl_cu_ready());
    pthread_mutex_lock(&lock);
    struct kl_cu_allocation *a = kl_cu_allocation_find(handle);
    bool held = a && a->handles;
    if (held) {
        a->handles--;
        kl_cu_allocation_drop(a);
    }
    pthread_mutex_unlock(&lock);
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    KL_CU_TRY(kl_cu_ready());
    if (!properties) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const struct kl_cu_allocation *a = kl_cu_allocation_find(handle);
    bool memory = a && !a->multicast;
    if (memory) *properties = a->properties;
    pthread_mutex_unlock(&lock);
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_mapped(const struct kl_cuda_range *range)
{
    return mapped_kinds >> range->kind & 1;
}

/* With the lock; NULL: nothing is mapped there. */
static struct mapping *mapping_at(const void *address, struct kl_cuda_range *range)
{
    return kl_cuda_ranges_find(address, range) && is_mapped(range) ? range->owner : NULL;
}

struct kl_cu_allocation *kl_cu_allocation_at(const void *address, size_t bytes, size_t *offset)
{
    struct kl_cuda_range range;
    const struct mapping *m = mapping_at(address, &range);
    const size_t before = m ? (size_t)((const char *)address - range.base) : 0;

    if (!m || m->of->multicast || bytes > range.bytes - before) return NULL;
    *offset = m->offset + before;
    return m->of;
}

CUresult kl_cu_mapped_segment(const void *address, size_t bytes, int *fd, size_t *offset)
{
    pthread_mutex_lock(&lock);
    const struct kl_cu_allocation *a = kl_cu_allocation_at(address, bytes, offset);
    if (a) *fd = a->fd;
    const bool of_device = a && a->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    pthread_mutex_unlock(&lock);
    return of_device ? CUDA_SUCCESS : a ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct kl_cuda_range range;

    KL_CU_TRY(kl_cu_ready());
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const struct mapping *m = mapping_at(address, &range);
    if (m) {
        m->of->count++;
        m->of->handles++;
        *handle = (uintptr_t)m->of->handle;
    }
    pthread_mutex_unlock(&lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- other processes ---- */

static CUresult export(const struct kl_cu_allocation *a, CUmemAllocationHandleType type, int *out) /* with the lock */
{
    if (!a || !(a->properties.requestedHandleTypes & type)) return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *out = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    KL_CU_TRY(kl_cu_ready());
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    CUresult rc = export(kl_cu_allocation_find(handle), type, out);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Of a descriptor, which it takes: with the lock. NULL: it is neither memory's nor a multicast object's. */
static struct kl_cu_allocation *imported(int fd)
{
    struct stat s;
    struct kl_cu_allocation *a = fstat(fd, &s) || s.st_size <= 0 ? NULL : calloc(1, sizeof *a);

    if (!a) {
        close(fd);
        return NULL;
    }
    *a = (struct kl_cu_allocation){.fd = fd,
                                   .device = kl_cuda_current(),
                                   .bytes = (size_t)s.st_size,
                                   .count = 1,
                                   .handles = 1,
                                   .imported = true,
                                   .multicast = kl_cuda_multicast_open(fd),
                                   .properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, kl_cuda_current()}}};
    if (a->multicast) a->bytes = kl_cuda_table_bytes(kl_cuda_multicast_table(a->multicast));
    return a;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *in, CUmemAllocationHandleType type)
{
    KL_CU_TRY(kl_cu_ready());
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    int fd = fcntl((int)(intptr_t)in, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct kl_cu_allocation *a = imported(fd);
    CUresult rc = a ? kl_cu_allocation_publish(a, handle) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    size_t align = alignment > KL_CU_GRANULARITY ? alignment : KL_CU_GRANULARITY;

    KL_CU_TRY(kl_cu_ready());
    if (!ptr || !bytes || bytes % KL_CU_GRANULARITY || bytes > SIZE_MAX / 4 || align & (align - 1) ||
        align > SIZE_MAX / 4 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct reservation *r = calloc(1, sizeof *r);
    char *p =
        r ? mmap(kl_cu_address(wanted), bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
          : MAP_FAILED;
    if (p == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    char *base = (char *)(((uintptr_t)p + align - 1) & ~(align - 1)); /* unmap the rest around it */
    if (base > p) munmap(p, (size_t)(base - p));
    munmap(base + bytes, (size_t)(p + align - base));
    pthread_mutex_lock(&lock);
    *r = (struct reservation){.base = base, .bytes = bytes, .next = reservations};
    reservations = r;
    pthread_mutex_unlock(&lock);
    *ptr = (uintptr_t)base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    KL_CU_TRY(kl_cu_ready());
    pthread_mutex_lock(&lock);
    for (struct reservation **at = &reservations; *at; at = &(*at)->next) {
        struct reservation *r = *at;

        if (r->base != kl_cu_address(ptr) || r->bytes != bytes || kl_cuda_ranges_overlap(r->base, bytes)) continue;
        *at = r->next;
        munmap(r->base, bytes);
        free(r);
        rc = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static bool is_reserved(const char *p, size_t bytes) /* with the lock */
{
    const struct reservation *r = reservations;

    while (r && !(p >= r->base && p < r->base + r->bytes && bytes <= r->bytes - (size_t)(p - r->base))) r = r->next;
    return r;
}

/* ---- together ---- */

/* A multicast object leaves the addresses as they are, without memory. */
static bool join(char *p, size_t bytes, size_t offset, const struct kl_cu_allocation *a)
{
    if (a->multicast) return !kl_cuda_multicast_map(a->multicast, p, bytes, offset);
    return mmap(p, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, a->fd, (off_t)offset) != MAP_FAILED;
}

static CUresult map(char *p, size_t bytes, size_t offset, struct kl_cu_allocation *a) /* with the lock */
{
    struct kl_cuda_range range = {.base = p,
                                  .bytes = bytes,
                                  .kind = a->multicast ? KL_CUDA_MEMORY_MULTICAST : KL_CUDA_MEMORY_MAPPED,
                                  .device = a->device};

    if (!is_reserved(p, bytes) || offset > a->bytes || bytes > a->bytes - offset) return CUDA_ERROR_INVALID_VALUE;
    if (kl_cuda_ranges_overlap(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
    struct mapping *m = calloc(1, sizeof *m);
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    m->of = a;
    m->offset = offset;
    range.owner = m;
    if (!kl_cuda_ranges_add(&range)) {
        free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!join(p, bytes, offset, a)) {
        kl_cuda_ranges_remove(p, mapped_kinds, &range);
        free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->count++;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    KL_CU_TRY(kl_cu_ready());
    if (flags || !bytes || bytes % KL_CU_GRANULARITY || ptr % KL_CU_GRANULARITY || offset % KL_CU_GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    struct kl_cu_allocation *a;
    KL_CU_TRY(kl_cu_allocation_hold(handle, &a));
    CUresult rc = a->multicast ? (CUresult)kl_cuda_table_wait(kl_cuda_multicast_table(a->multicast)) : CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!rc) rc = map(kl_cu_address(ptr), bytes, offset, a);
    kl_cu_allocation_drop(a);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Do the mappings from here on make up exactly this range? */
static bool is_covered(char *p, size_t bytes)
{
    struct kl_cuda_range range;

    for (char *end = p + bytes; p < end; p += range.bytes) {
        if (!kl_cuda_ranges_find(p, &range) || !is_mapped(&range) || range.base != p) return false;
        if (range.bytes > (size_t)(end - p)) return false;
    }
    return true;
}

/* Wait for the work of all devices that have access to a multicast object. */
static CUresult wait_for_team(const struct kl_cuda_range *range)
{
    const struct mapping *m = range->owner;

    for (int i = 0; i < KL_CUDA_DEVICES; i++)
        if (m->access[i]) KL_CU_TRY(kl_cuda_device_wait(i));
    return CUDA_SUCCESS;
}

/* Wait for the work of all devices with memory mapped there. */
static CUresult wait_for_devices(const char *p, size_t bytes)
{
    struct kl_cuda_range range;

    for (const char *end = p + bytes; p < end && kl_cuda_ranges_find(p, &range); p += range.bytes) {
        if (range.kind == KL_CUDA_MEMORY_MULTICAST)
            KL_CU_TRY(wait_for_team(&range));
        else
            KL_CU_TRY(kl_cuda_device_wait(range.device));
    }
    return CUDA_SUCCESS;
}

/* With the lock; false: the addresses could not be emptied. */
static bool part(const struct kl_cuda_range *range)
{
    struct mapping *m = range->owner;
    bool parted = true;

    if (m->of->multicast)
        kl_cuda_multicast_unmap(range->base);
    else
        parted = mmap(range->base, range->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                      0) != MAP_FAILED;
    kl_cu_allocation_drop(m->of);
    free(m);
    return parted;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
    struct kl_cuda_range range;
    char *p = kl_cu_address(ptr), *end = p + bytes;
    CUresult rc = CUDA_SUCCESS;

    KL_CU_TRY(kl_cu_ready());
    if (!bytes || !is_covered(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(wait_for_devices(p, bytes));
    pthread_mutex_lock(&lock);
    while (p < end && kl_cuda_ranges_remove(p, mapped_kinds, &range)) {
        if (!part(&range)) rc = CUDA_ERROR_OPERATING_SYSTEM;
        p += range.bytes;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- access ---- */

/* The index of a device's or the host's access rights; -1: none. */
static int place_of(const CUmemLocation *where)
{
    const struct kl_cuda_device *d;

    if (where->type == CU_MEM_LOCATION_TYPE_DEVICE) return kl_cuda_device(where->id, &d) ? -1 : where->id;
    return where->type == CU_MEM_LOCATION_TYPE_HOST ? KL_CUDA_DEVICES : -1;
}

/* All devices are this process: it has the rights of any of them. */
static int protection_of(const struct mapping *m)
{
    int protection = PROT_NONE;

    for (int i = 0; i <= KL_CUDA_DEVICES; i++) {
        if (m->access[i] & CU_MEM_ACCESS_FLAGS_PROT_READ) protection |= PROT_READ;
        if (m->access[i] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) protection |= PROT_WRITE;
    }
    return protection;
}

/* Of a multicast object only instructions with copies may use it. */
static bool protect(const struct kl_cuda_range *range)
{
    const struct mapping *m = range->owner;

    if (!m->of->multicast) return !mprotect(range->base, range->bytes, protection_of(m));
    kl_cuda_multicast_allow(range->base, protection_of(m) != PROT_NONE);
    return true;
}

static CUresult set_access(char *p, size_t bytes, const CUmemAccessDesc *list, size_t count) /* with the lock */
{
    struct kl_cuda_range range;

    if (!is_covered(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (char *end = p + bytes; p < end; p += range.bytes) {
        struct mapping *m = mapping_at(p, &range);
        for (size_t i = 0; i < count; i++) m->access[place_of(&list[i].location)] = (unsigned char)list[i].flags;
        if (!protect(&range)) return CUDA_ERROR_OPERATING_SYSTEM;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *list, size_t count)
{
    KL_CU_TRY(kl_cu_ready());
    if (!bytes || !list || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (place_of(&list[i].location) < 0 || (unsigned)list[i].flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult rc = set_access(kl_cu_address(ptr), bytes, list, count);
    pthread_mutex_unlock(&lock);
    return rc;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr)
{
    struct kl_cuda_range range;

    KL_CU_TRY(kl_cu_ready());
    int place = where ? place_of(where) : -1;
    if (!flags || place < 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const struct mapping *m = mapping_at(kl_cu_address(ptr), &range);
    if (m) *flags = m->access[place];
    pthread_mutex_unlock(&lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
