/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/device.h"

#include "base/atomic.h"
#include "comm/config.h"
#include "compat/cuda/core/limit.h"
#include "compat/cuda/core/topology.h"
#include "device/visible.h"
#include "os/hostinfo.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct kl_cuda_device *device; /* by ordinal */
    int count;
    int visible[KL_CUDA_DEVICES], nvisible; /* ordinals */
    cudaError_t rc;
} all;

/* ---- read ---- */

static void number(struct kl_cuda_device *list, int count)
{
    struct kl_comm_config config;
    uint64_t host = 0;

    kl_param_load_from(&kl_comm_param_set, &config, kl_settings_process());
    kl_hostinfo_host_hash(config.hostid, &host);
    for (int i = 0; i < count; i++) {
        list[i].ordinal = i;
        kl_uuid_of(host, i, list[i].uuid);
    }
}

static void see(void)
{
    int count;

    if (koloGetDeviceCount(&count)) return;
    for (int i = 0; i < count && i < KL_CUDA_DEVICES; i++)
        if (koloGetDeviceOrdinal(i, &all.visible[i]) || all.visible[i] >= all.count)
            return;
        else
            all.nvisible++;
}

static void read_all(void)
{
    all.rc = cudaErrorUnknown;
    if (koloGetHostDeviceCount(&all.count)) return;
    all.device = calloc((size_t)all.count + 1, sizeof *all.device);
    if (!all.device || kl_cuda_topology_describe(all.device, all.count)) return;
    number(all.device, all.count);
    for (int i = 0; i < all.count; i++) {
        all.device[i].model = kl_cuda_model(all.device[i].sm, all.device[i].pci_device);
        all.device[i].memory = kl_cuda_limit_of_device(all.count);
    }
    see();
    all.rc = cudaSuccess;
}

static cudaError_t ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_all);
    return all.rc;
}

static _Atomic bool used, forked;

static void in_child(void)
{
    if (kl_load_relaxed(&used)) kl_store_relaxed(&forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

cudaError_t kl_cuda_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (kl_load_relaxed(&forked)) return cudaErrorInitializationError;
    pthread_once(&once, watch_forks);
    KL_CUDA_TRY(ready());
    if (!all.nvisible) return cudaErrorNoDevice;
    if (!kl_load_relaxed(&used)) kl_store_relaxed(&used, true);
    return cudaSuccess;
}

/* ---- queries ---- */

cudaError_t kl_cuda_host_devices(const struct kl_cuda_device **list, int *count)
{
    KL_CUDA_TRY(ready());
    *list = all.device;
    *count = all.count;
    return cudaSuccess;
}

cudaError_t kl_cuda_device_count(int *count)
{
    KL_CUDA_TRY(ready());
    *count = all.nvisible;
    return cudaSuccess;
}

cudaError_t kl_cuda_device(int device, const struct kl_cuda_device **out)
{
    KL_CUDA_TRY(kl_cuda_ready());
    if (device < 0 || device >= all.nvisible) return cudaErrorInvalidDevice;
    *out = &all.device[all.visible[device]];
    return cudaSuccess;
}

int kl_cuda_ordinal(int device)
{
    const struct kl_cuda_device *d;

    return kl_cuda_device(device, &d) ? -1 : d->ordinal;
}

cudaError_t kl_cuda_device_at(const char *text, int *device)
{
    struct kl_cuda_place place;

    KL_CUDA_TRY(kl_cuda_ready());
    if (!text || !device || !kl_cuda_place_read(text, &place)) return cudaErrorInvalidValue;
    for (int i = 0; i < all.nvisible; i++) {
        if (!kl_cuda_place_same(&all.device[all.visible[i]].at, &place)) continue;
        *device = i;
        return cudaSuccess;
    }
    return cudaErrorInvalidDevice;
}

void kl_cuda_uuid_text(const unsigned char uuid[16], char text[41])
{
    char *at = text + sprintf(text, "GPU-");

    for (int i = 0; i < 16; i++) at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}
