/* SPDX-License-Identifier: Apache-2.0 */
/** cublas_gemm.h - products of matrices, one or many, of all types: the entry points describe, one kernel computes. */
#ifndef KL_CUDA_CUBLAS_GEMM_H
#define KL_CUDA_CUBLAS_GEMM_H

#include "compat/cuda/libraries/cublas_handle.h"

/** C = alpha A B + beta C for each of `batch`. */
struct kl_cublas_gemm {
    cublasOperation_t trans_a, trans_b;
    int m, n, k;
    const void *a, *b; /* with `arrays`: of pointers */
    void *c;
    int lda, ldb, ldc;
    long long stride_a, stride_b, stride_c; /* in elements */
    int batch;
    bool arrays;
    cudaDataType type; /* of A and B */
    cudaDataType type_c;
    enum kl_cublas_type sum; /* the type that is computed in */
    bool half_scalars;       /* alpha and beta are fp16 */
    struct kl_cublas_scalar alpha, beta;
};

/** Check and launch it. alpha and beta have the type `sum`, or fp16 with `half_scalars`. */
cublasStatus_t kl_cublas_gemm(cublasHandle_t handle, struct kl_cublas_gemm *g, const void *alpha, const void *beta);

#endif
