/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/rdma.h"

#include <stdio.h>
#include <unistd.h>

enum { POINTER, MANAGED, ORDINAL, LEGACY, START, BYTES, CAPABLE, ID, ATTRIBUTES };

static int attribute(const struct kl_cuda_driver *driver, int device, int which)
{
    int value = 0;

    return driver->cuDeviceGetAttribute(&value, which, device) ? 0 : value; /* an older driver does not know it */
}

ncclResult_t kl_cuda_rdma_of(int ordinal, struct kl_cuda_rdma *rdma)
{
    const struct kl_cuda_driver *driver;
    int device;

    KL_TRY(kl_cuda_driver(&driver));
    KL_CUDA_TRY(driver, cuDeviceGet(&device, ordinal), "device %d", ordinal);
    *rdma = (struct kl_cuda_rdma){
        .by_address = attribute(driver, device, KL_CU_GPU_DIRECT_RDMA),
        .by_dma_buf = attribute(driver, device, KL_CU_DMA_BUF),
        .ordered = attribute(driver, device, KL_CU_RDMA_WRITES_ORDERING) >= KL_CU_WRITES_TO_OWNER,
        .can_flush = attribute(driver, device, KL_CU_RDMA_FLUSH_OPTIONS) & KL_CU_FLUSH_BY_HOST,
    };
    return ncclSuccess;
}

/* An attribute that does not apply stays 0. */
static bool ask(const struct kl_cuda_driver *driver, const void *ptr, uint64_t value[ATTRIBUTES])
{
    static const int which[ATTRIBUTES] = {
        [POINTER] = KL_CU_POINTER_TYPE,     [MANAGED] = KL_CU_POINTER_IS_MANAGED, [ORDINAL] = KL_CU_POINTER_ORDINAL,
        [LEGACY] = KL_CU_POINTER_IS_LEGACY, [START] = KL_CU_POINTER_RANGE_START,  [BYTES] = KL_CU_POINTER_RANGE_BYTES,
        [CAPABLE] = KL_CU_POINTER_CAN_RDMA, [ID] = KL_CU_POINTER_BUFFER_ID};
    void *place[ATTRIBUTES];

    for (int i = 0; i < ATTRIBUTES; i++) {
        value[i] = 0; /* the driver may write one byte, four or eight */
        place[i] = &value[i];
    }
    return !driver->cuPointerGetAttributes(ATTRIBUTES, which, place, (uint64_t)(uintptr_t)ptr);
}

/* Questions need a context, whichever it is. */
static ncclResult_t enter(int device, const struct kl_cuda_context **c)
{
    KL_TRY(kl_cuda_context_of(device, NULL, 0, c));
    return kl_cuda_enter(*c);
}

bool kl_cuda_region_find(int device, const void *ptr, size_t bytes, struct kl_cuda_region *region)
{
    const struct kl_cuda_context *c;
    uint64_t value[ATTRIBUTES], at = (uint64_t)(uintptr_t)ptr;

    if (enter(device, &c)) return false;
    const bool known = ask(c->driver, ptr, value);
    kl_cuda_leave(c);
    if (!known || value[ORDINAL] != (uint64_t)device) return false;
    if (value[POINTER] != KL_CU_MEMORY_DEVICE || value[MANAGED] || !value[ID]) return false;
    if (at < value[START] || at - value[START] > value[BYTES] || bytes > value[BYTES] - (at - value[START]))
        return false;
    *region = (struct kl_cuda_region){.id = value[ID],
                                      .device = device,
                                      .base = (char *)(uintptr_t)value[START],
                                      .bytes = value[BYTES],
                                      .by_address = value[LEGACY] || value[CAPABLE]};
    return true;
}

void kl_cuda_region_pages(const struct kl_cuda_region *r, char **start, size_t *bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)r->base / page * page;

    *start = (char *)from;
    *bytes = ((uintptr_t)r->base + r->bytes - from + page - 1) / page * page;
}

/* Another thread may capture in a mode that forbids it; it is no part of any graph. */
int kl_cuda_region_export(const struct kl_cuda_region *r)
{
    const struct kl_cuda_context *c;
    int mode = KL_CU_CAPTURE_RELAXED, fd = -1;
    size_t bytes;
    char *start;

    kl_cuda_region_pages(r, &start, &bytes);
    if (enter(r->device, &c)) return -1;
    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    const int rc =
        c->driver->cuMemGetHandleForAddressRange(&fd, (uint64_t)(uintptr_t)start, bytes, KL_CU_DMA_BUF_DESCRIPTOR, 0);
    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    kl_cuda_leave(c);
    return rc ? -1 : fd;
}

/* The driver has it for memory of cudaMalloc only. */
void kl_cuda_region_synchronise(const struct kl_cuda_region *r)
{
    const struct kl_cuda_context *c;
    const int on = 1;

    if (enter(r->device, &c)) return;
    (void)c->driver->cuPointerSetAttribute(&on, KL_CU_POINTER_SYNC_MEMOPS, (uint64_t)(uintptr_t)r->base);
    kl_cuda_leave(c);
}

ncclResult_t kl_cuda_flush(int device)
{
    const struct kl_cuda_context *c;

    KL_TRY(enter(device, &c));
    const int rc = c->driver->cuFlushGPUDirectRDMAWrites(KL_CU_FLUSH_CURRENT, KL_CU_WRITES_TO_OWNER);
    kl_cuda_leave(c);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "device %d: cuFlushGPUDirectRDMAWrites failed with %s (%d)", device,
                   kl_cuda_error_name(c->driver, rc), rc);
}
