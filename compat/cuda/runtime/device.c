/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.c - devices: their number, the thread's current one, and their properties.
 */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/core/reset.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"

#include <stdio.h>

/* ---- which ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_ready();
    if (rc == cudaErrorNoDevice) *count = 0;
    return kl_cudart_done(rc ? rc : kl_cuda_device_count(count));
}
KL_CUDART_ENTRY(cudaGetDeviceCount);

cudaError_t cudaSetDevice(int device)
{
    return kl_cudart_done(kl_cuda_select(device));
}
KL_CUDART_ENTRY(cudaSetDevice);

cudaError_t cudaGetDevice(int *device)
{
    if (!device) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_ready();
    if (!rc) *device = kl_cuda_current();
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGetDevice);

static cudaError_t check(int device)
{
    const struct kl_cuda_device *d;

    return kl_cuda_device(device, &d);
}

cudaError_t cudaSetValidDevices(int *list, int count)
{
    for (int i = 0; i < count; i++) {
        cudaError_t rc = list ? check(list[i]) : cudaErrorInvalidValue;
        if (rc) return kl_cudart_done(rc);
    }
    return kl_cudart_done(count < 0 ? cudaErrorInvalidValue : kl_cuda_ready());
}
KL_CUDART_ENTRY(cudaSetValidDevices);

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags;
    cudaError_t rc = flags & ~(unsigned)cudaInitDeviceFlagsAreValid ? cudaErrorInvalidValue : check(device);

    if (!rc) kl_cuda_activate(device);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaInitDevice);

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    if (flags & ~(unsigned)cudaDeviceMask) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_enter();
    if (!rc) kl_cuda_primary(kl_cuda_current())->flags = flags;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaSetDeviceFlags);

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    if (!flags) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_enter();
    if (!rc) *flags = kl_cuda_primary(kl_cuda_current())->flags | cudaDeviceMapHost;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGetDeviceFlags);

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t rc = kl_engine_inside() ? cudaErrorNotPermitted : kl_cuda_device_synchronize(); /* not for itself */

    if (!rc) kl_cuda_pool_trim_to_threshold(kl_cuda_current());
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaDeviceSynchronize);

static cudaError_t reset(int device)
{
    KL_CUDA_TRY(kl_cuda_reset(device));
    kl_engine_reset_variables(device);
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    cudaError_t rc = kl_cuda_enter();

    if (!rc) rc = kl_cuda_unsafe();
    return kl_cudart_done(rc ? rc : reset(kl_cuda_current()));
}
KL_CUDART_ENTRY(cudaDeviceReset);

/* ---- peers ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return kl_cudart_done(kl_cuda_peer_can_access(can, device, peer));
}
KL_CUDART_ENTRY(cudaDeviceCanAccessPeer);

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    cudaError_t rc = kl_cuda_enter();

    return kl_cudart_done(rc ? rc : kl_cuda_peer_enable(kl_cuda_current(), peer, flags));
}
KL_CUDART_ENTRY(cudaDeviceEnablePeerAccess);

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    cudaError_t rc = kl_cuda_enter();

    return kl_cudart_done(rc ? rc : kl_cuda_peer_disable(kl_cuda_current(), peer));
}
KL_CUDART_ENTRY(cudaDeviceDisablePeerAccess);

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to)
{
    return kl_cudart_done(kl_cuda_peer_attribute(value, (int)attribute, from, to));
}
KL_CUDART_ENTRY(cudaDeviceGetP2PAttribute);

/* ---- attributes ---- */

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_device(device, &d);

    return kl_cudart_done(rc ? rc : kl_cuda_attribute(d, (int)attribute, value));
}
KL_CUDART_ENTRY(cudaDeviceGetAttribute);

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    const struct kl_cuda_device *d;
    cudaError_t rc = kl_cuda_device(device, &d);

    if (!rc && !kl_cuda_place_text(&d->at, text, bytes)) rc = cudaErrorInvalidValue;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaDeviceGetPCIBusId);

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    return kl_cudart_done(kl_cuda_device_at(text, device));
}
KL_CUDART_ENTRY(cudaDeviceGetByPCIBusId);

/* ---- settings ---- */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t rc = kl_cuda_enter();

    if (rc) return kl_cudart_done(rc);
    if (least) *least = KL_CUDA_PRIORITY_LEAST;
    if (greatest) *greatest = KL_CUDA_PRIORITY_GREATEST;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDeviceGetStreamPriorityRange);

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    if (!config) return kl_cudart_done(cudaErrorInvalidValue);
    *config = cudaFuncCachePreferNone;
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaDeviceGetCacheConfig);

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    if ((unsigned)config > cudaFuncCachePreferEqual) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaDeviceSetCacheConfig);

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    if (!config) return kl_cudart_done(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaDeviceGetSharedMemConfig);

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    if ((unsigned)config > cudaSharedMemBankSizeEightByte) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaDeviceSetSharedMemConfig);

/* ---- versions, the profiler ---- */

enum { VERSION = 13000, VERSION_12 = 12080 };

cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version) return kl_cudart_done(cudaErrorInvalidValue);
    *version = VERSION;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDriverGetVersion);

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version) return kl_cudart_done(cudaErrorInvalidValue);
    *version = VERSION;
    return cudaSuccess;
}

static cudaError_t runtime_version_12(int *version)
{
    if (!version) return kl_cudart_done(cudaErrorInvalidValue);
    *version = VERSION_12;
    return cudaSuccess;
}
KL_CUDART_ENTRY_12(cudaRuntimeGetVersion, runtime_version_12);

cudaError_t cudaProfilerStart(void)
{
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaProfilerStart);

cudaError_t cudaProfilerStop(void)
{
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaProfilerStop);
