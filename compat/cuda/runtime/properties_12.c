/* SPDX-License-Identifier: Apache-2.0 */
/**
 * properties_12.c - cudaDeviceProp of CUDA 12, which is 1032 bytes, under the name that its header has for it.
 */
#define CUDART_VERSION 12080
#include "compat/cuda/runtime/properties.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/runtime/entry.h"

_Static_assert(sizeof(struct cudaDeviceProp) == 1032, "CUDA 12's");

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device)
{
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_device(device, &d);

    if (!rc && !properties) rc = cudaErrorInvalidValue;
    if (rc) return kl_cudart_done(rc);
    *properties = (struct cudaDeviceProp){.clockRate = (int)d->model->clock_mhz * 1000,
                                          .memoryClockRate = (int)d->model->memory_mhz * 1000,
                                          .deviceOverlap = 1,
                                          .singleToDoublePrecisionPerfRatio = 2,
                                          .cooperativeMultiDeviceLaunch = 0};
    KL_CUDART_PROPERTIES(properties, d);
    return cudaSuccess;
}
KL_CUDART_ENTRY_12(cudaGetDeviceProperties_v2, cudaGetDeviceProperties_v2);
KL_CUDART_ENTRY_12(cudaGetDeviceProperties, cudaGetDeviceProperties_v2);
