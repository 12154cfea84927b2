/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points for products of matrices. */
#include "compat/cuda/libraries/cublas_gemm.h"

#define SHAPE                                                                                                          \
    .trans_a = transa, .trans_b = transb, .m = m, .n = n, .k = k, .a = A, .b = B, .c = (void *)(uintptr_t)C,           \
    .lda = lda, .ldb = ldb, .ldc = ldc
#define STRIDES        .stride_a = strideA, .stride_b = strideB, .stride_c = strideC, .batch = batch
#define TYPE(data, in) .type = data, .type_c = data, .sum = in

/* fp16, whose type is one of C++ (cuda_fp16.h). */
KL_CUBLAS_EXPORT cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int m, int n, int k, const uint16_t *alpha, const uint16_t *A, int lda,
                                            const uint16_t *B, int ldb, const uint16_t *beta, uint16_t *C, int ldc);
KL_CUBLAS_EXPORT cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                                   cublasOperation_t transb, int m, int n, int k, const uint16_t *alpha,
                                                   const uint16_t *const A[], int lda, const uint16_t *const B[],
                                                   int ldb, const uint16_t *beta, uint16_t *const C[], int ldc,
                                                   int batch);
KL_CUBLAS_EXPORT cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                                          cublasOperation_t transb, int m, int n, int k,
                                                          const uint16_t *alpha, const uint16_t *A, int lda,
                                                          long long strideA, const uint16_t *B, int ldb,
                                                          long long strideB, const uint16_t *beta, uint16_t *C, int ldc,
                                                          long long strideC, int batch);

#define GEMM_OF(L, suffix, type, data, in, half)                                                                       \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##gemm##suffix(                                                           \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,                \
        const type *alpha, const type *A, int lda, const type *B, int ldb, const type *beta, type *C, int ldc)         \
    {                                                                                                                  \
        struct kl_cublas_gemm g = {SHAPE, .batch = 1, TYPE(data, in), .half_scalars = half};                           \
        return kl_cublas_gemm(handle, &g, alpha, beta);                                                                \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##gemm##suffix);                                                                          \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##gemmBatched(                                                            \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,                \
        const type *alpha, const type *const A[], int lda, const type *const B[], int ldb, const type *beta,           \
        type *const C[], int ldc, int batch)                                                                           \
    {                                                                                                                  \
        struct kl_cublas_gemm g = {SHAPE, .batch = batch, .arrays = true, TYPE(data, in), .half_scalars = half};       \
        return kl_cublas_gemm(handle, &g, alpha, beta);                                                                \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##gemmBatched);                                                                           \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##gemmStridedBatched(                                                     \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,                \
        const type *alpha, const type *A, int lda, long long strideA, const type *B, int ldb, long long strideB,       \
        const type *beta, type *C, int ldc, long long strideC, int batch)                                              \
    {                                                                                                                  \
        struct kl_cublas_gemm g = {SHAPE, STRIDES, TYPE(data, in), .half_scalars = half};                              \
        return kl_cublas_gemm(handle, &g, alpha, beta);                                                                \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##gemmStridedBatched);

GEMM_OF(S, _v2, float, CUDA_R_32F, KL_CUBLAS_S, false)
GEMM_OF(D, _v2, double, CUDA_R_64F, KL_CUBLAS_D, false)
GEMM_OF(C, _v2, cuComplex, CUDA_C_32F, KL_CUBLAS_C, false)
GEMM_OF(Z, _v2, cuDoubleComplex, CUDA_C_64F, KL_CUBLAS_Z, false)
GEMM_OF(H, , uint16_t, CUDA_R_16F, KL_CUBLAS_S, true)

/* ---- with the types as arguments ---- */

/* The types of A and B, of C, and of alpha, beta and sums: a row for each product. */
static const struct {
    cudaDataType in, out;
    cublasComputeType_t compute;
    enum kl_cublas_type sum;
    bool half_scalars;
} combinations[] = {
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, KL_CUBLAS_S, false},
    {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, KL_CUBLAS_S, false},
    {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, KL_CUBLAS_S, false},
    {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, KL_CUBLAS_S, true},
    {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, KL_CUBLAS_S, false},
    {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, KL_CUBLAS_S, false},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, KL_CUBLAS_D, false},
    {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, KL_CUBLAS_C, false},
    {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, KL_CUBLAS_Z, false},
};

/* Forms that differ in speed or in more precision than asked for. */
static cublasComputeType_t plain(cublasComputeType_t compute)
{
    switch (compute) {
    case CUBLAS_COMPUTE_16F_PEDANTIC:
        return CUBLAS_COMPUTE_16F;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return CUBLAS_COMPUTE_32F;
    case CUBLAS_COMPUTE_64F_PEDANTIC:
        return CUBLAS_COMPUTE_64F;
    default:
        return compute;
    }
}

static cublasStatus_t with_types(cublasHandle_t handle, struct kl_cublas_gemm *g, cudaDataType a, cudaDataType b,
                                 cudaDataType c, cublasComputeType_t compute, const void *alpha, const void *beta)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    for (size_t i = 0; i < sizeof combinations / sizeof combinations[0]; i++) {
        if (combinations[i].in != a || a != b || combinations[i].out != c || combinations[i].compute != plain(compute))
            continue;
        g->type = a;
        g->type_c = c;
        g->sum = combinations[i].sum;
        g->half_scalars = combinations[i].half_scalars;
        return kl_cublas_gemm(handle, g, alpha, beta);
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                             int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype,
                                             int lda, const void *B, cudaDataType Btype, int ldb, const void *beta,
                                             void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                                             cublasGemmAlgo_t algo)
{
    struct kl_cublas_gemm g = {SHAPE, .batch = 1};

    (void)algo;
    return with_types(handle, &g, Atype, Btype, Ctype, computeType, alpha, beta);
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                                    cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                                    const void *const A[], cudaDataType Atype, int lda,
                                                    const void *const B[], cudaDataType Btype, int ldb,
                                                    const void *beta, void *const C[], cudaDataType Ctype, int ldc,
                                                    int batch, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    struct kl_cublas_gemm g = {SHAPE, .batch = batch, .arrays = true};

    (void)algo;
    return with_types(handle, &g, Atype, Btype, Ctype, computeType, alpha, beta);
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const void *alpha,
    const void *A, cudaDataType Atype, int lda, long long strideA, const void *B, cudaDataType Btype, int ldb,
    long long strideB, const void *beta, void *C, cudaDataType Ctype, int ldc, long long strideC, int batch,
    cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    struct kl_cublas_gemm g = {SHAPE, STRIDES};

    (void)algo;
    return with_types(handle, &g, Atype, Btype, Ctype, computeType, alpha, beta);
}

KL_CUBLAS_ENTRY(cublasGemmEx);
KL_CUBLAS_ENTRY(cublasGemmBatchedEx);
KL_CUBLAS_ENTRY(cublasGemmStridedBatchedEx);
