/* SPDX-License-Identifier: Apache-2.0 */
/** device.c - start, and devices. */
#include "compat/cuda/core/device.h"

#include "base/atomic.h"
#include "compat/cuda/core/error.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/driver/driver.h"

#include <stdio.h>
#include <string.h>

/* ---- start ---- */

static _Atomic bool begun;

CUresult cuInit(unsigned int flags)
{
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_ready());
    kl_store_relaxed(&begun, true);
    return CUDA_SUCCESS;
}

CUresult kl_cu_ready(void)
{
    if (!kl_load_relaxed(&begun) && !kl_cuda_context()) return CUDA_ERROR_NOT_INITIALIZED;
    return (CUresult)kl_cuda_ready();
}

CUresult kl_cu_enter(void)
{
    KL_CU_TRY(kl_cu_ready());
    if (!kl_cuda_context()) return CUDA_ERROR_INVALID_CONTEXT;
    return (CUresult)kl_cuda_failure(kl_cuda_current());
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

/* ---- errors ---- */

static const struct {
    int number;
    const char *name;
} names[] = {
#include "compat/cuda/driver/names.inc"
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !*name; i++)
        if (names[i].number == (int)error) *name = names[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const char *name;

    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    KL_CU_TRY(cuGetErrorName(error, &name));
    const struct kl_cuda_error *row = kl_cuda_error((int)error);
    *text = row ? row->text : name;
    return CUDA_SUCCESS;
}

/* ---- devices ---- */

CUresult cuDeviceGetCount(int *count)
{
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_device_count(count);
}

static CUresult find(CUdevice device, const struct kl_cuda_device **d)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_device(device, d);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(ordinal, &d));
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)bytes, "%s", d->model->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, d->uuid, sizeof d->uuid);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = d->memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    return (CUresult)kl_cuda_attribute(d, attribute, value);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = d->sm / 10;
    *minor = d->sm % 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(find(device, &d));
    return kl_cuda_place_text(&d->at, text, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_device_at(text, device);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_peer_can_access(can, device, peer);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_peer_attribute(value, attribute, from, to);
}
