/* SPDX-License-Identifier: Apache-2.0 */
/** properties.h - the common fields of cudaDeviceProp in CUDA 12 and 13; their layouts differ. */
#ifndef KL_CUDART_PROPERTIES_H
#define KL_CUDART_PROPERTIES_H

#include "compat/cuda/include/driver_types.h"

#include <stdio.h>
#include <string.h>

/** Fill in *p from the device d. */
#define KL_CUDART_PROPERTIES(p, d)                                                                                     \
    do {                                                                                                               \
        const struct kl_cuda_model *m = (d)->model;                                                                    \
                                                                                                                       \
        snprintf((p)->name, sizeof(p)->name, "%s", m->name);                                                           \
        memcpy((p)->uuid.bytes, (d)->uuid, sizeof(d)->uuid);                                                           \
        (p)->totalGlobalMem = (d)->memory;                                                                             \
        (p)->sharedMemPerBlock = 48 << 10;                                                                             \
        (p)->regsPerBlock = (p)->regsPerMultiprocessor = 65536;                                                        \
        (p)->warpSize = 32;                                                                                            \
        (p)->memPitch = 0x7fffffff;                                                                                    \
        (p)->maxThreadsPerBlock = (p)->maxThreadsDim[0] = (p)->maxThreadsDim[1] = 1024;                                \
        (p)->maxThreadsDim[2] = 64;                                                                                    \
        (p)->maxGridSize[0] = 0x7fffffff;                                                                              \
        (p)->maxGridSize[1] = (p)->maxGridSize[2] = 65535;                                                             \
        (p)->totalConstMem = 64 << 10;                                                                                 \
        (p)->major = (d)->sm / 10;                                                                                     \
        (p)->minor = (d)->sm % 10;                                                                                     \
        (p)->textureAlignment = (p)->surfaceAlignment = 512;                                                           \
        (p)->texturePitchAlignment = 32;                                                                               \
        (p)->multiProcessorCount = (int)m->processors;                                                                 \
        (p)->pciBusID = (int)(d)->at.bus;                                                                              \
        (p)->pciDeviceID = (int)(d)->at.device;                                                                        \
        (p)->pciDomainID = (int)(d)->at.domain;                                                                        \
        (p)->asyncEngineCount = 3;                                                                                     \
        (p)->memoryBusWidth = (int)m->bus_bits;                                                                        \
        (p)->l2CacheSize = (int)m->l2_mib << 20;                                                                       \
        (p)->maxThreadsPerMultiProcessor = (int)m->threads;                                                            \
        (p)->maxBlocksPerMultiProcessor = (int)m->blocks;                                                              \
        (p)->sharedMemPerMultiprocessor = (size_t)m->shared_kib << 10;                                                 \
        (p)->sharedMemPerBlockOptin = (size_t)m->optin_kib << 10;                                                      \
        (p)->reservedSharedMemPerBlock = 1024;                                                                         \
        (p)->canMapHostMemory = (p)->concurrentKernels = (p)->ECCEnabled = (p)->unifiedAddressing = 1;                 \
        (p)->streamPrioritiesSupported = (p)->globalL1CacheSupported = (p)->localL1CacheSupported = 1;                 \
        (p)->managedMemory = (p)->concurrentManagedAccess = (p)->computePreemptionSupported = 1;                       \
        (p)->canUseHostPointerForRegisteredMem = (p)->cooperativeLaunch = (p)->hostRegisterSupported = 1;              \
        (p)->hostRegisterReadOnlySupported = (p)->memoryPoolsSupported = (p)->ipcEventSupported = 1;                   \
        (p)->gpuDirectRDMASupported = 1;                                                                               \
        (p)->gpuDirectRDMAFlushWritesOptions = 1; /* by the host: cuFlushGPUDirectRDMAWrites */                        \
        (p)->memoryPoolSupportedHandleTypes = cudaMemHandleTypePosixFileDescriptor;                                    \
    } while (0)

#endif
