/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/libraries/cublas_handle.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Blocks are divided over the cores here: threads of OpenBLAS's own would compete with them. */
static void use_one_thread(void)
{
    openblas_set_num_threads(1);
}

struct kl_cublas_scalar kl_cublas_scalar(cublasHandle_t handle, const void *scalar, size_t bytes)
{
    struct kl_cublas_scalar s = {0};

    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        s.at = scalar;
    else
        memcpy(&s.value, scalar, bytes);
    return s;
}

cublasStatus_t kl_cublas_launch(cublasHandle_t handle, const struct kl_engine_kernel *kernel, unsigned blocks,
                                void *arguments, bool waits)
{
    if (kl_library_launch(kernel, blocks, arguments, handle->stream)) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (waits && cudaStreamSynchronize(handle->stream)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int devices;

    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    (void)pthread_once(&once, use_one_thread);
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle); /* work that was launched has copies of everything it needs */
    return CUBLAS_STATUS_SUCCESS;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    (void)handle;
    if (!version) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    static const int properties[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};

    if (!value || (unsigned)type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
    *value = properties[type];
    return CUBLAS_STATUS_SUCCESS;
}

KL_CUBLAS_EXPORT size_t cublasGetCudartVersion(void)
{
    return CUDART_VERSION;
}

static const struct {
    cublasStatus_t status;
    const char *name, *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature that this needs"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the program failed to execute"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "a licence is missing"},
};

KL_CUBLAS_EXPORT const char *cublasGetStatusName(cublasStatus_t status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "CUBLAS_STATUS_UNKNOWN";
}

KL_CUBLAS_EXPORT const char *cublasGetStatusString(cublasStatus_t status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "unknown status";
}

#define SETTING(Name, type, field)                                                                                     \
    KL_CUBLAS_EXPORT cublasStatus_t cublasSet##Name(cublasHandle_t handle, type value)                                 \
    {                                                                                                                  \
        if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                                             \
        handle->field = value;                                                                                         \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    KL_CUBLAS_EXPORT cublasStatus_t cublasGet##Name(cublasHandle_t handle, type *value)                                \
    {                                                                                                                  \
        if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                                             \
        if (!value) return CUBLAS_STATUS_INVALID_VALUE;                                                                \
        *value = handle->field;                                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublasSet##Name);                                                                                  \
    KL_CUBLAS_ENTRY(cublasGet##Name);
SETTING(Stream_v2, cudaStream_t, stream)
SETTING(PointerMode_v2, cublasPointerMode_t, pointer_mode)
SETTING(MathMode, cublasMath_t, math_mode)
SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)

KL_CUBLAS_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)workspace;
    (void)bytes;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

KL_CUBLAS_ENTRY(cublasCreate_v2);
KL_CUBLAS_ENTRY(cublasDestroy_v2);
KL_CUBLAS_ENTRY(cublasGetVersion_v2);
KL_CUBLAS_ENTRY(cublasGetProperty);
KL_CUBLAS_ENTRY(cublasGetCudartVersion);
KL_CUBLAS_ENTRY(cublasGetStatusName);
KL_CUBLAS_ENTRY(cublasGetStatusString);
KL_CUBLAS_ENTRY(cublasSetWorkspace_v2);
