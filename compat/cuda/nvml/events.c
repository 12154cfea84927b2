/* SPDX-License-Identifier: Apache-2.0 */
/** events.c - sets of events, which never come: a wait ends when its time has. */
#include "compat/cuda/nvml/nvml_state.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct nvmlEventSet_st {
    unsigned magic;
};

enum { MAGIC = 0x4b4f4c4f };

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    KL_NVML_TRY(kl_nvml_ready());
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    struct nvmlEventSet_st *s = malloc(sizeof *s);
    if (!s) return NVML_ERROR_MEMORY;
    s->magic = MAGIC;
    *set = s;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    KL_NVML_TRY(kl_nvml_ready());
    if (!set || set->magic != MAGIC) return NVML_ERROR_INVALID_ARGUMENT;
    set->magic = 0;
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!set || set->magic != MAGIC) return NVML_ERROR_INVALID_ARGUMENT;
    return types ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct timespec left = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    KL_NVML_TRY(kl_nvml_ready());
    if (!set || set->magic != MAGIC || !data) return NVML_ERROR_INVALID_ARGUMENT;
    while (nanosleep(&left, &left) && errno == EINTR) continue;
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
