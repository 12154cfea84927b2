/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include "base/atomic.h"
#include "base/log.h"
#include "device/cuda/driver.h"
#include "device/cuda/image.h"

#include <pthread.h>

const struct kl_device_kind *const kl_device_kinds[] = {
    &kl_host_devices,
    &kl_cuda_devices,
    NULL,
};

/* Programs that use CUDA have their data there; others run as they always did. */
static bool suits_cuda(void)
{
    const struct kl_cuda_driver *driver;

    return kl_cuda_is_used() && kl_cuda_image_exists(false) && !kl_cuda_driver(&driver);
}

static ncclResult_t check_cuda(void)
{
    const struct kl_cuda_driver *driver;
    kl_cu_library library;

    KL_TRY(kl_cuda_driver(&driver));
    return kl_cuda_image_load(&library);
}

static ncclResult_t decide(const struct kl_device_kind **kind)
{
    struct kl_device_config config;

    kl_param_load(&kl_device_param_set, &config);
    const bool cuda = config.devices == KL_DEVICES_CUDA || (config.devices == KL_DEVICES_AUTO && suits_cuda());
    if (cuda) KL_TRY(check_cuda());
    *kind = cuda ? &kl_cuda_devices : &kl_host_devices;
    KL_INFO(KL_INIT | KL_ENV, "Devices: %s (%s)", (*kind)->name,
            config.devices != KL_DEVICES_AUTO ? "KOLO_DEVICES"
            : cuda                            ? "the program uses CUDA"
                                              : "the program does not use CUDA, or libkolo-cuda.so.0 is missing");
    return ncclSuccess;
}

ncclResult_t kl_devices(const struct kl_device_kind **kind)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic(const struct kl_device_kind *) decided;
    ncclResult_t rc = ncclSuccess;

    *kind = kl_load_acquire(&decided);
    if (*kind) return ncclSuccess;
    pthread_mutex_lock(&lock);
    *kind = kl_load_relaxed(&decided);
    if (!*kind) rc = decide(kind);
    if (!rc) kl_store_release(&decided, *kind);
    pthread_mutex_unlock(&lock);
    return rc;
}
