/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/image.h"

#include "base/param.h"
#include "device/config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char symbol[] = "kolo_cuda_image";

static const char *file_of(bool stand_in)
{
    return stand_in ? "libkolo-cuda-standin.so.0" : "libkolo-cuda.so.0";
}

/* The folder of the object that this code is in, with its final slash; "" if unknown. A program is named as it was started. */
static void own_folder(char *folder, size_t size)
{
    char program[1024];
    Dl_info me;
    const char *path = dladdr((const void *)symbol, &me) ? me.dli_fname : NULL;
    const ssize_t n = path && strchr(path, '/') ? -1 : readlink("/proc/self/exe", program, sizeof program - 1);

    *folder = '\0';
    if (n >= 0) program[n] = '\0';
    if (n >= 0) path = program;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash) snprintf(folder, size, "%.*s", (int)(slash + 1 - path), path);
}

static void *open_at(const char *folder, const char *below, const char *file)
{
    char path[2048];

    if (snprintf(path, sizeof path, "%s%s%s", folder, below, file) >= (int)sizeof path) return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library(bool stand_in)
{
    struct kl_device_config config;
    const char *file = file_of(stand_in);
    char folder[1024];
    void *handle = NULL;

    kl_param_load(&kl_device_param_set, &config);
    if (*config.cuda_library) return dlopen(config.cuda_library, RTLD_NOW | RTLD_LOCAL);
    own_folder(folder, sizeof folder);
    if (*folder) handle = open_at(folder, "", file);
    if (!handle && *folder) handle = open_at(folder, "kolo/", file);
    if (!handle && *folder) handle = open_at(folder, "../", file); /* beside the tests' folder, and lib/kolo/nccl */
    return handle ? handle : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

bool kl_cuda_image_exists(bool stand_in)
{
    void *handle = open_library(stand_in);

    if (handle) dlclose(handle);
    return handle;
}

/* ---- once ---- */

static kl_cu_library loaded;
static ncclResult_t result;
static char problem[KL_ERROR_TEXT];

static ncclResult_t load(void)
{
    const struct kl_cuda_driver *driver;
    const void *image;

    KL_TRY(kl_cuda_driver(&driver));
    void *handle = open_library(driver->stand_in); /* stays open: its code runs */
    if (!handle)
        return KL_FAIL(ncclSystemError,
                       "the code for GPUs cannot be opened: %s: install %s beside libkolo.so, name it in "
                       "KOLO_CUDA_LIBRARY, or set KOLO_DEVICES=host",
                       dlerror(), file_of(driver->stand_in));
    image = dlsym(handle, symbol);
    if (!image) return KL_FAIL(ncclSystemError, "KOLO_CUDA_LIBRARY: it has no %s", symbol);
    int rc = driver->cuLibraryLoadData(&loaded, image, NULL, NULL, 0, NULL, NULL, 0);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError,
                   "the driver, of CUDA %d.%d, does not load the code for GPUs: %s (%d); code of CUDA 13 needs driver "
                   "580 or newer; KOLO_DEVICES=host goes without",
                   driver->version / 1000, driver->version % 1000 / 10, kl_cuda_error_name(driver, rc), rc);
}

static void load_once(void)
{
    result = load();
    if (result) snprintf(problem, sizeof problem, "%s", kl_error_text());
}

ncclResult_t kl_cuda_image_load(kl_cu_library *library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_once);
    *library = loaded;
    if (result) kl_error_adopt(problem);
    return result;
}
