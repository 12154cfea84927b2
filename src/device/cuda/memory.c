/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/memory.h"

#include <stdio.h>

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

/* ---- allocation ---- */

ncclResult_t kl_cuda_alloc(int device, enum kl_memory_kind kind, size_t bytes, void **ptr)
{
    const struct kl_cuda_context *c;
    uint64_t at = 0;

    (void)kind; /* all of it can be exported */
    *ptr = NULL;
    if (!bytes) return ncclSuccess;
    KL_TRY(kl_cuda_context_of(device, NULL, 0, &c));
    KL_TRY(kl_cuda_enter(c));
    int rc = c->driver->cuMemAlloc(&at, bytes);
    kl_cuda_leave(c);
    if (rc)
        return KL_FAIL(rc == KL_CU_OUT_OF_MEMORY ? ncclInvalidArgument : ncclUnhandledCudaError,
                       "%zu bytes of device %d: cuMemAlloc failed with %s (%d)", bytes, device,
                       kl_cuda_error_name(c->driver, rc), rc);
    *ptr = (void *)(uintptr_t)at;
    return ncclSuccess;
}

/* ---- the allocation of a pointer ---- */

struct facts {
    unsigned type; /* 0: not CUDA's */
    int ordinal;
    int managed, legacy;
    void *pool;
};

/* Questions need a context, whichever it is: no further one is made. */
static ncclResult_t enter_any(const struct kl_cuda_context **c)
{
    KL_TRY(kl_cuda_context_of(kl_cuda_current(), NULL, 0, c));
    return kl_cuda_enter(*c);
}

/* Of any address. */
static struct facts ask(const struct kl_cuda_driver *driver, const void *ptr)
{
    static const int attributes[] = {KL_CU_POINTER_TYPE, KL_CU_POINTER_ORDINAL, KL_CU_POINTER_IS_MANAGED,
                                     KL_CU_POINTER_IS_LEGACY, KL_CU_POINTER_POOL};
    struct facts f = {.ordinal = -1};
    uint64_t wide[2] = {0}; /* booleans: the driver may write one byte or four */
    void *values[] = {&f.type, &f.ordinal, &wide[0], &wide[1], &f.pool};

    if (driver->cuPointerGetAttributes(5, attributes, values, address(ptr))) return (struct facts){.ordinal = -1};
    f.managed = wide[0] != 0;
    f.legacy = wide[1] != 0;
    return f;
}

static void look_up(const struct kl_cuda_driver *driver, const void *ptr, struct kl_memory *memory)
{
    uint64_t base = 0;
    size_t bytes = 0;
    const struct facts f = ask(driver, ptr);
    if (f.type != KL_CU_MEMORY_DEVICE || driver->cuMemGetAddressRange(&base, &bytes, address(ptr))) return;
    *memory = (struct kl_memory){.kind = f.legacy ? KL_MEMORY_SHAREABLE : KL_MEMORY_PRIVATE,
                                 .device = f.ordinal,
                                 .base = (void *)(uintptr_t)base,
                                 .bytes = bytes};
}

void kl_cuda_lookup(const void *ptr, struct kl_memory *memory)
{
    const struct kl_cuda_context *c;

    *memory = (struct kl_memory){.kind = KL_MEMORY_FOREIGN, .device = -1};
    if (enter_any(&c)) return;
    look_up(c->driver, ptr, memory);
    kl_cuda_leave(c);
}

ncclResult_t kl_cuda_free(void *ptr)
{
    const struct kl_cuda_driver *driver;
    const struct kl_cuda_context *c;

    if (!ptr) return ncclSuccess;
    KL_TRY(enter_any(&c));
    driver = c->driver;
    const struct facts f = ask(driver, ptr);
    kl_cuda_leave(c);
    if (f.type != KL_CU_MEMORY_DEVICE)
        return KL_FAIL(ncclInvalidArgument, "ncclMemFree: %p is no memory of a CUDA device", ptr);
    KL_TRY(kl_cuda_context_of(f.ordinal, NULL, 0, &c));
    KL_TRY(kl_cuda_enter(c));
    int rc = driver->cuMemFree(address(ptr));
    kl_cuda_leave(c);
    if (!rc) return ncclSuccess;
    return KL_FAIL(rc == KL_CU_INVALID_VALUE ? ncclInvalidArgument : ncclUnhandledCudaError,
                   "ncclMemFree: %p: cuMemFree failed with %s (%d)", ptr, kl_cuda_error_name(driver, rc), rc);
}

/* ---- checks ---- */

/* A reserved range of addresses (cuMemAddressReserve) may consist of several allocations; others only happen to be adjacent. */
static ncclResult_t check_range(const struct kl_cuda_driver *driver, const struct facts *f, const char *name,
                                const void *ptr, size_t bytes)
{
    const uint64_t end = address(ptr) + bytes;
    const bool several = !f->legacy && !f->pool;

    for (uint64_t at = address(ptr), base; at < end; at = base + bytes)
        if ((at != address(ptr) && !several) || driver->cuMemGetAddressRange(&base, &bytes, at))
            return KL_FAIL(ncclInvalidArgument, "%s at %p, %zu bytes: the allocation ends %zu bytes before", name, ptr,
                           (size_t)(end - address(ptr)), (size_t)(end - at));
    return ncclSuccess;
}

/* Peer access covers memory of cudaMalloc; other memory is mapped by each device that its owner lists. */
static bool is_mapped(const struct kl_cuda_context *c, const struct facts *f, const void *ptr)
{
    const struct kl_cu_location here = {.type = KL_CU_LOCATION_DEVICE, .id = c->device};
    unsigned long long flags = 0;
    unsigned pool_flags = 0;

    if (f->pool)
        return !c->driver->cuMemPoolGetAccess(&pool_flags, f->pool, &here) && pool_flags == KL_CU_ACCESS_READ_WRITE;
    return !c->driver->cuMemGetAccess(&flags, &here, address(ptr)) && flags == KL_CU_ACCESS_READ_WRITE;
}

ncclResult_t kl_cuda_check(const struct kl_cuda_context *const *devices, int n, const char *name, const void *ptr,
                           size_t bytes)
{
    const struct kl_cuda_driver *driver = devices[0]->driver;
    const struct facts f = ask(driver, ptr);

    if (!f.type)
        return KL_FAIL(ncclInvalidArgument,
                       "%s at %p is no memory of CUDA: use cudaMalloc or ncclMemAlloc, or set KOLO_DEVICES=host", name,
                       ptr);
    if (f.type == KL_CU_MEMORY_HOST || f.managed) return ncclSuccess; /* pinned or managed: mapped by all devices */
    KL_TRY(check_range(driver, &f, name, ptr, bytes));
    for (int i = 0; i < n && !f.legacy; i++)
        if (f.ordinal != devices[i]->device && !is_mapped(devices[i], &f, ptr))
            return KL_FAIL(
                ncclInvalidArgument,
                "%s at %p: device %d, which other ranks use, has no access to it: use cudaMalloc, or let the "
                "device access it (cuMemSetAccess, cudaMemPoolSetAccess)",
                name, ptr, devices[i]->device);
    return ncclSuccess;
}
