/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/libraries/cublas_handle.h"

/* Rows of a copy in two dimensions are columns of a matrix, or the elements of a vector. */
static cublasStatus_t copy(size_t bytes, size_t count, const void *from, size_t from_pitch, void *to, size_t to_pitch)
{
    if (bytes == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, bytes, count, cudaMemcpyDefault) ? CUBLAS_STATUS_MAPPING_ERROR
                                                                                         : CUBLAS_STATUS_SUCCESS;
}

KL_CUBLAS_EXPORT cublasStatus_t cublasSetVector(int n, int elemSize, const void *x, int incx, void *y, int incy)
{
    if (n < 0 || elemSize <= 0 || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
    return copy((size_t)elemSize, (size_t)n, x, (size_t)elemSize * (size_t)incx, y, (size_t)elemSize * (size_t)incy);
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGetVector(int n, int elemSize, const void *x, int incx, void *y, int incy)
{
    return cublasSetVector(n, elemSize, x, incx, y, incy);
}

KL_CUBLAS_EXPORT cublasStatus_t cublasSetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B,
                                                int ldb)
{
    if (rows < 0 || cols < 0 || elemSize <= 0 || lda < rows || ldb < rows || lda <= 0 || ldb <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    return copy((size_t)elemSize * (size_t)rows, (size_t)cols, A, (size_t)elemSize * (size_t)lda, B,
                (size_t)elemSize * (size_t)ldb);
}

KL_CUBLAS_EXPORT cublasStatus_t cublasGetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B,
                                                int ldb)
{
    return cublasSetMatrix(rows, cols, elemSize, A, lda, B, ldb);
}

KL_CUBLAS_ENTRY(cublasSetVector);
KL_CUBLAS_ENTRY(cublasGetVector);
KL_CUBLAS_ENTRY(cublasSetMatrix);
KL_CUBLAS_ENTRY(cublasGetMatrix);
