/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernel.c - kernels that kolo-nvcc compiled, as functions of the driver: handles of cudaGetFuncBySymbol. Any other can only
 * come from machine code that was refused, and is refused again.
 */
#include "compat/cuda/driver/same.h"

KL_CU_ALIKE(CUlaunchAttribute, cudaLaunchAttribute);

/* ---- launches ---- */

static CUresult launch(const cudaLaunchConfig_t *config, CUfunction function, void **arguments)
{
    KL_CU_RETURN_SAME(kl_cu_enter(), cudaLaunchKernelExC(config, function, arguments));
}

/* Arguments that are packed already cannot be told from others. */
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **arguments, void **extra)
{
    const cudaLaunchConfig_t config = {.gridDim = {grid_x, grid_y, grid_z},
                                       .blockDim = {block_x, block_y, block_z},
                                       .dynamicSmemBytes = shared_bytes,
                                       .stream = stream};

    return extra ? CUDA_ERROR_NOT_SUPPORTED : launch(&config, function, arguments);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void **arguments)
{
    cudaLaunchAttribute together = {.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    const cudaLaunchConfig_t config = {.gridDim = {grid_x, grid_y, grid_z},
                                       .blockDim = {block_x, block_y, block_z},
                                       .dynamicSmemBytes = shared_bytes,
                                       .stream = stream,
                                       .attrs = &together,
                                       .numAttrs = 1};

    return launch(&config, function, arguments);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **arguments, void **extra)
{
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    const cudaLaunchConfig_t config = {.gridDim = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                       .blockDim = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                       .dynamicSmemBytes = c->sharedMemBytes,
                                       .stream = c->hStream,
                                       .attrs = (void *)c->attrs,
                                       .numAttrs = c->numAttrs};

    return extra ? CUDA_ERROR_NOT_SUPPORTED : launch(&config, function, arguments);
}

/* ---- properties ---- */

static CUresult attributes(struct cudaFuncAttributes *a, CUfunction function)
{
    KL_CU_RETURN_SAME(kl_cu_enter(), cudaFuncGetAttributes(a, function));
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    struct cudaFuncAttributes a;

    if (!value || (unsigned)attribute > CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(attributes(&a, function));
    const int values[] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = a.maxThreadsPerBlock,
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)a.sharedSizeBytes,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)a.constSizeBytes,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)a.localSizeBytes,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = a.numRegs,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = a.ptxVersion,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = a.binaryVersion,
        [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = a.cacheModeCA,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = a.maxDynamicSharedSizeBytes,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = a.preferredShmemCarveout,
    };
    *value = values[attribute];
    return CUDA_SUCCESS;
}

SAME(cuFuncSetAttribute, cudaFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
     (function, (enum cudaFuncAttribute)attribute, value))
SAME(cuFuncGetName, cudaFuncGetName, (const char **name, CUfunction function), (name, function))
SAME(cuFuncGetParamInfo, cudaFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *bytes),
     (function, index, offset, bytes))
SAME(cuOccupancyMaxActiveBlocksPerMultiprocessor, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, CUfunction function, int block_threads, size_t shared_bytes),
     (blocks, function, block_threads, shared_bytes))
SAME(cuKernelGetFunction, cudaGetFuncBySymbol, (CUfunction * function, CUkernel kernel), (function, kernel))
