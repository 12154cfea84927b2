/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuda.c - CUDA devices, as a row of the table of devices. Streams and events are CUDA's own: programs use CUDA for
 * them, and operations take its handles (coll/gpu).
 */
#include "device/cuda/context.h"
#include "device/cuda/driver.h"
#include "device/cuda/memory.h"
#include "device/device.h"

static int count(const struct kl_device_hints *hints)
{
    const struct kl_cuda_driver *driver;

    (void)hints;
    return kl_cuda_driver(&driver) ? 0 : driver->devices;
}

static int chosen(bool selected_only)
{
    (void)selected_only; /* a context is current, or device 0 is */
    return kl_cuda_current();
}

/* Of the emulated machine: devices are spread over the nodes in blocks. */
static int node(int device, int devices, const int *nodes, int nnodes)
{
    return nnodes > 0 && devices > 0 ? nodes[device % devices * nnodes / devices] : 0;
}

/* Programs choose by CUDA. */
static void keep_current(int device)
{
    (void)device;
}

/* Memory needs no preparation: the pin is the address. */
static ncclResult_t pin(const void *ptr, size_t bytes, uint64_t *number)
{
    struct kl_memory memory;

    kl_cuda_lookup(ptr, &memory);
    if (memory.kind == KL_MEMORY_FOREIGN || (const char *)ptr + bytes > (const char *)memory.base + memory.bytes)
        return KL_FAIL(ncclInvalidArgument, "%zu bytes at %p are not within one allocation of a CUDA device", bytes,
                       ptr);
    *number = (uint64_t)(uintptr_t)ptr;
    return ncclSuccess;
}

static ncclResult_t unpin(uint64_t number)
{
    (void)number;
    return ncclSuccess;
}

const struct kl_device_kind kl_cuda_devices = {
    .name = "cuda",
    .mappable = false,

    .count = count,
    .node = node,
    .select = keep_current,
    .current = kl_cuda_current,
    .chosen = chosen,
    .adopt = keep_current,

    .alloc = kl_cuda_alloc,
    .free = kl_cuda_free,
    .lookup = kl_cuda_lookup,
    .pin = pin,
    .unpin = unpin,
};
