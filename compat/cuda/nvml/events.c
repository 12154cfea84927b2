/* SPDX-License-Identifier: Apache-2.0 */
/** events.c - sets of events, which never come: a wait ends when its time has. */
#include "compat/cuda/core/handle.h"
#include "compat/cuda/nvml/nvml_state.h"

#include <errno.h>
#include <time.h>

static bool is_set(nvmlEventSet_t set)
{
    return kl_cuda_handle_find(KL_CUDA_EVENT_SET, set) != NULL;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    static char nothing; /* a set has only its name */

    KL_NVML_TRY(kl_nvml_ready());
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlEventSet_t made = kl_cuda_handle_make(KL_CUDA_EVENT_SET, &nothing);
    if (!made) return NVML_ERROR_MEMORY;
    *set = made;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    KL_NVML_TRY(kl_nvml_ready());
    return kl_cuda_handle_take(KL_CUDA_EVENT_SET, set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
    return types ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct timespec left = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    KL_NVML_TRY(kl_nvml_ready());
    if (!is_set(set) || !data) return NVML_ERROR_INVALID_ARGUMENT;
    while (nanosleep(&left, &left) && errno == EINTR) continue;
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
