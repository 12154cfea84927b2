/* SPDX-License-Identifier: Apache-2.0 */
/** graph_memory.c - the memory that nodes of graphs allocate, by device: it goes with its graph, so nothing is reserved beyond it. */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/runtime/entry.h"

static cudaError_t check(int device)
{
    const struct kl_cuda_device *unused;

    return kl_cuda_device(device, &unused);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    uint64_t now, most;
    cudaError_t rc =
        value && (unsigned)attribute <= cudaGraphMemAttrReservedMemHigh ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = check(device);
    if (rc) return kl_cudart_done(rc);
    kl_cuda_pool_of_graphs(device, &now, &most);
    *(uint64_t *)value =
        attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh ? most : now;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDeviceGetGraphMemAttribute);

/* Only the highest values can be set, to 0. */
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    const bool legal = value && !*(const uint64_t *)value &&
                       (attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh);
    cudaError_t rc = legal ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = check(device);
    if (!rc) kl_cuda_pool_reset_of_graphs(device);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaDeviceSetGraphMemAttribute);

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    cudaError_t rc = kl_cuda_enter();

    return kl_cudart_done(rc ? rc : check(device));
}
KL_CUDART_ENTRY(cudaDeviceGraphMemTrim);
