/* SPDX-License-Identifier: Apache-2.0 */
/** stream_same.c - attributes and callbacks of streams, and hints on managed memory: other names for the runtime's. */
#include "compat/cuda/driver/same.h"

#undef cuMemPrefetchAsync
#undef cuMemAdvise

KL_CU_ALIKE(CUmemLocation, struct cudaMemLocation);

/* ---- streams ---- */

SAME(cuStreamAddCallback, cudaStreamAddCallback,
     (CUstream stream, CUstreamCallback callback, void *argument, unsigned flags),
     (stream, (cudaStreamCallback_t)callback, argument, flags))
SAME(cuStreamCopyAttributes, cudaStreamCopyAttributes, (CUstream to, CUstream from), (to, from))
SAME(cuStreamGetAttribute, cudaStreamGetAttribute,
     (CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value),
     (stream, (cudaLaunchAttributeID)attribute, (void *)value))
SAME(cuStreamSetAttribute, cudaStreamSetAttribute,
     (CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value),
     (stream, (cudaLaunchAttributeID)attribute, (const void *)value))

/* ---- managed memory ---- */

static struct cudaMemLocation place_of(CUmemLocation where)
{
    return (struct cudaMemLocation){.type = (enum cudaMemLocationType)where.type, .id = where.id};
}

/* As CUDA 11 has it: a device, or the host. */
static struct cudaMemLocation place_11(CUdevice device)
{
    return (struct cudaMemLocation){
        .type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, .id = device};
}

SAME(cuStreamAttachMemAsync, cudaStreamAttachMemAsync, (CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned flags),
     (stream, kl_cu_address(ptr), bytes, flags))
SAME(cuMemPrefetchAsync_v2, cudaMemPrefetchAsync,
     (CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream),
     (kl_cu_address(ptr), bytes, place_of(where), flags, stream))
SAME(cuMemPrefetchAsync, cudaMemPrefetchAsync, (CUdeviceptr ptr, size_t bytes, CUdevice device, CUstream stream),
     (kl_cu_address(ptr), bytes, place_11(device), 0, stream))
SAME(cuMemAdvise_v2, cudaMemAdvise, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where),
     (kl_cu_address(ptr), bytes, (enum cudaMemoryAdvise)advice, place_of(where)))
SAME(cuMemAdvise, cudaMemAdvise, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice device),
     (kl_cu_address(ptr), bytes, (enum cudaMemoryAdvise)advice, place_11(device)))
