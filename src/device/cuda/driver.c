/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct kl_cuda_driver driver;
static ncclResult_t opened;
static char problem[KL_ERROR_TEXT];

static const char library[] = "libcuda.so.1";

/* cuGetProcAddress of version 12. */
typedef int (*find_function)(const char *name, void **function, int version, uint64_t flags, int *status);

/* dlsym yields an object pointer; POSIX promises that it holds a function's address. */
static void keep(void *place, void *function)
{
    memcpy(place, &function, sizeof function);
}

static ncclResult_t find(find_function lookup, const char *name, int version, void *place)
{
    void *function = NULL;
    int status = 0;

    if (lookup(name, &function, version, 0, &status) || !function)
        return KL_FAIL(ncclUnhandledCudaError,
                       "%s has no %s of CUDA %d.%d: GPUs need a driver of CUDA 12 or newer; KOLO_DEVICES=host goes "
                       "without",
                       library, name, version / 1000, version % 1000 / 10);
    keep(place, function);
    return ncclSuccess;
}

/* The functions of KL_CUDA_FUNCTIONS, and where `driver` keeps them. */
static const struct {
    const char *name;
    int version;
    size_t place;
} wanted[] = {
#define ROW(name, version, parameters) {#name, version, offsetof(struct kl_cuda_driver, name)},
    KL_CUDA_FUNCTIONS(ROW)
#undef ROW
};

static ncclResult_t find_functions(void *handle)
{
    find_function lookup;
    void *symbol = dlsym(handle, "cuGetProcAddress_v2");

    if (!symbol)
        return KL_FAIL(ncclUnhandledCudaError,
                       "%s is older than CUDA 12: install a newer driver, or set "
                       "KOLO_DEVICES=host",
                       library);
    keep(&lookup, symbol);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        KL_TRY(find(lookup, wanted[i].name, wanted[i].version, (char *)&driver + wanted[i].place));
    return ncclSuccess;
}

static ncclResult_t start(void *handle)
{
    driver.stand_in = dlsym(handle, "cuKoloStandIn") != NULL;
    KL_TRY(find_functions(handle));
    KL_CUDA_TRY(&driver, cuInit(0), "CUDA does not start; KOLO_DEVICES=host goes without");
    KL_CUDA_TRY(&driver, cuDriverGetVersion(&driver.version), "CUDA");
    KL_CUDA_TRY(&driver, cuDeviceGetCount(&driver.devices), "CUDA");
    if (!driver.devices)
        return KL_FAIL(ncclUnhandledCudaError, "CUDA has no devices: see CUDA_VISIBLE_DEVICES, or set "
                                               "KOLO_DEVICES=host");
    return ncclSuccess;
}

static void open_once(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    opened = handle ? start(handle)
                    : KL_FAIL(ncclUnhandledCudaError, "CUDA devices: %s; KOLO_DEVICES=host goes without", dlerror());
    if (opened) snprintf(problem, sizeof problem, "%s", kl_error_text());
}

ncclResult_t kl_cuda_driver(const struct kl_cuda_driver **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_once);
    *out = &driver;
    if (opened) kl_error_adopt(problem);
    return opened;
}

const char *kl_cuda_error_name(const struct kl_cuda_driver *d, int result)
{
    const char *name = NULL;

    return d->cuGetErrorName && !d->cuGetErrorName(result, &name) && name ? name : "an unknown error";
}

/* ---- is it used? ---- */

static bool is_active(void *handle)
{
    int (*state)(int, unsigned *, int *), (*count)(int *), n = 0, active = 0;
    void *get_state = dlsym(handle, "cuDevicePrimaryCtxGetState"), *get_count = dlsym(handle, "cuDeviceGetCount");
    unsigned flags;

    if (!get_state || !get_count) return false;
    keep(&state, get_state);
    keep(&count, get_count);
    if (count(&n)) return false; /* cuInit was not called */
    for (int i = 0; i < n && !active; i++)
        if (state(i, &flags, &active)) active = 0;
    return active;
}

bool kl_cuda_is_used(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    bool used = handle && !dlsym(handle, "cuKoloStandIn") && is_active(handle);

    if (handle) dlclose(handle);
    return used;
}
