/* SPDX-License-Identifier: Apache-2.0 */
/** system.c - the library: begun and ended, versions, texts of errors. */
#include "compat/cuda/nvml/nvml_state.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/** Marks this as no real NVML: it reports the topology, so no topology may be made from it (device/nvml.h). */
extern const int nvmlKoloStandIn;
__attribute__((visibility("default"))) const int nvmlKoloStandIn = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned begun; /* how often */

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    const struct kl_cuda_device *list;
    int count;

    (void)flags;
    if (kl_cuda_host_devices(&list, &count)) return NVML_ERROR_UNKNOWN;
    pthread_mutex_lock(&lock);
    begun++;
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    bool was = begun;
    begun -= was;
    pthread_mutex_unlock(&lock);
    return was ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t kl_nvml_ready(void)
{
    pthread_mutex_lock(&lock);
    bool is = begun;
    pthread_mutex_unlock(&lock);
    return is ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t kl_nvml_text(const char *from, char *to, unsigned bytes)
{
    if (!to) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(from) >= bytes) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, from);
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        "Success",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires reset",
        "GPU access blocked by the operating system",
        "Driver/library version mismatch",
        "In use by another client",
        "Insufficient Memory",
        "No data",
        "vGPU ECC not supported",
        "Insufficient resources",
        "Frequency not supported",
        "Argument version mismatch",
        "Deprecated",
        "Not ready",
        "GPU not found",
        "Invalid state",
    };

    return (unsigned)result < sizeof texts / sizeof texts[0] ? texts[result] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int bytes)
{
    KL_NVML_TRY(kl_nvml_ready());
    return kl_nvml_text("580.65.06", text, bytes); /* the first with CUDA 13.0: programs compare it */
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned int bytes)
{
    KL_NVML_TRY(kl_nvml_ready());
    return kl_nvml_text("13.580.65.06", text, bytes);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version) return NVML_ERROR_INVALID_ARGUMENT;
    *version = 13000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int bytes)
{
    char path[64], text[4096];

    KL_NVML_TRY(kl_nvml_ready());
    if (!name || !bytes) return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NVML_ERROR_NOT_FOUND;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    snprintf(name, bytes, "%s", text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    KL_NVML_TRY(kl_nvml_ready());
    if (!state) return NVML_ERROR_INVALID_ARGUMENT;
    *state = (nvmlConfComputeSystemState_t){0};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings)
{
    KL_NVML_TRY(kl_nvml_ready());
    if (!settings) return NVML_ERROR_INVALID_ARGUMENT;
    if (settings->version != nvmlSystemConfComputeSettings_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *settings = (nvmlSystemConfComputeSettings_t){.version = settings->version};
    return NVML_SUCCESS;
}
