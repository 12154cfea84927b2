/* SPDX-License-Identifier: Apache-2.0 */
/** module.c - machine code of GPUs, and NVIDIA's static runtime: both are refused, with a remedy. */
#include "compat/cuda/driver/driver.h"

#include <pthread.h>
#include <stdio.h>

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
REFUSED_CODE(cuLibraryLoadData)
REFUSED_CODE(cuLibraryLoadFromFile)
REFUSED_CODE(cuLinkCreate_v2)
REFUSED_CODE(cuLinkAddData_v2)
REFUSED_CODE(cuLinkAddFile_v2)

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
