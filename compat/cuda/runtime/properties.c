/* SPDX-License-Identifier: Apache-2.0 */
/**
 * properties.c - cudaDeviceProp of CUDA 13, which is 1008 bytes. properties_12.c has CUDA 12's.
 */
#include "compat/cuda/runtime/properties.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/runtime/entry.h"

_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "CUDA 13's");

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_device(device, &d);

    if (!rc && !properties) rc = cudaErrorInvalidValue;
    if (rc) return kl_cudart_done(rc);
    *properties = (struct cudaDeviceProp){.gpuPciDeviceID = d->pci_device << 16 | 0x10de,
                                          .gpuPciSubsystemID = d->pci_subsystem,
                                          .deviceNumaId = -1,
                                          .hostNumaId = d->numa};
    KL_CUDART_PROPERTIES(properties, d);
    return cudaSuccess;
}

/* The best is the one that has all that is asked for; all are of a kind here, so it is the first that does. */
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
    int count;
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_ready();

    if (!rc && (!device || !wanted)) rc = cudaErrorInvalidValue;
    if (!rc) rc = kl_cuda_device_count(&count);
    if (rc) return kl_cudart_done(rc);
    *device = 0;
    for (int i = 0; i < count; i++) {
        if (kl_cuda_device(i, &d) || d->sm < wanted->major * 10 + wanted->minor || d->memory < wanted->totalGlobalMem)
            continue;
        *device = i;
        break;
    }
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaChooseDevice);
