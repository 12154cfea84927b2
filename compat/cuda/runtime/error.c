/* SPDX-License-Identifier: Apache-2.0 */
/**
 * error.c - the last error of a thread, and names and texts of all.
 */
#include "compat/cuda/core/error.h"

#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"

static _Thread_local cudaError_t last;

/* In a kernel the error is its block's. */
static cudaError_t *last_here(void)
{
    int *of_block = kl_engine_last_error();

    return of_block ? (cudaError_t *)of_block : &last;
}

cudaError_t kl_cudart_done(cudaError_t rc)
{
    if (rc && !kl_cuda_in_driver_call()) *last_here() = rc;
    return rc;
}

/* The thread's error, or a device's sticky one. */
static cudaError_t sticky_or(cudaError_t rc)
{
    cudaError_t failure = kl_engine_inside() ? cudaSuccess : kl_cuda_failure(kl_cuda_current());

    return failure ? failure : rc;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t *here = last_here(), rc = *here;

    *here = cudaSuccess;
    return sticky_or(rc);
}
KL_CUDART_ENTRY(cudaGetLastError);

cudaError_t cudaPeekAtLastError(void)
{
    return sticky_or(*last_here());
}
KL_CUDART_ENTRY(cudaPeekAtLastError);

const char *cudaGetErrorName(cudaError_t error)
{
    const struct kl_cuda_error *row = kl_cuda_error((int)error);

    return row ? row->name : "unrecognized error code";
}
KL_CUDART_ENTRY(cudaGetErrorName);

const char *cudaGetErrorString(cudaError_t error)
{
    const struct kl_cuda_error *row = kl_cuda_error((int)error);

    return row ? row->text : "unrecognized error code";
}
KL_CUDART_ENTRY(cudaGetErrorString);
