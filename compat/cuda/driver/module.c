/* SPDX-License-Identifier: Apache-2.0 */
/**
 * module.c - machine code of GPUs, and NVIDIA's static runtime: both are refused, with a remedy. Images of kernels that kolo-nvcc
 * compiled (kolo_cuda/image.h) are loaded: a library is its image, a kernel the address of its host function.
 */
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/include/kolo_cuda/image.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void say_no_code(void)
{
    fputs("kolo: PTX and machine code of GPUs cannot run on CPUs: loading it is CUDA_ERROR_NO_BINARY_FOR_GPU (209)\n",
          stderr);
}

CUresult kl_cu_refuse_code(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, say_no_code);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The arguments are ignored. */
#define REFUSED_CODE(name)                                                                                             \
    __attribute__((visibility("default"))) CUresult name(void);                                                        \
    CUresult name(void)                                                                                                \
    {                                                                                                                  \
        return kl_cu_refuse_code();                                                                                    \
    }

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    (void)module, (void)file;
    return kl_cu_refuse_code();
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)module, (void)image;
    return kl_cu_refuse_code();
}

REFUSED_CODE(cuModuleLoadDataEx)
REFUSED_CODE(cuModuleLoadFatBinary)
REFUSED_CODE(cuLibraryLoadFromFile)
REFUSED_CODE(cuLinkCreate_v2)
REFUSED_CODE(cuLinkAddData_v2)
REFUSED_CODE(cuLinkAddFile_v2)

/* ---- libraries ---- */

static const struct kolo_cuda_image *image_of(const void *image)
{
    return strncmp(image, KOLO_CUDA_IMAGE, sizeof KOLO_CUDA_IMAGE) ? NULL : image;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                           unsigned int njit, CUlibraryOption *options, void **values, unsigned int noptions)
{
    (void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)noptions;
    if (!library || !image) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_ready());
    if (!image_of(image)) return kl_cu_refuse_code();
    *library = (CUlibrary)(uintptr_t)image;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
    if (!library || !image_of(library)) return CUDA_ERROR_INVALID_HANDLE;
    for (const struct kolo_cuda_kernel *k = image_of(library)->kernel; k->name; k++) {
        if (strcmp(k->name, name) != 0) continue;
        *kernel = (CUkernel)(uintptr_t)k->function;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)function, (void)module, (void)name;
    return CUDA_ERROR_INVALID_HANDLE;
}

/* ---- private tables ---- */

/** Marks this as no real driver: its devices are CPUs. */
extern const int cuKoloStandIn;
__attribute__((visibility("default"))) const int cuKoloStandIn = 1;

static void say_static(void)
{
    fputs("kolo: this program contains NVIDIA's static runtime, which works with NVIDIA's driver only: link it with "
          "-cudart shared, or compile it with kolo-nvcc\n",
          stderr);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)id;
    if (table) *table = NULL;
    pthread_once(&once, say_static);
    return CUDA_ERROR_NOT_FOUND;
}
