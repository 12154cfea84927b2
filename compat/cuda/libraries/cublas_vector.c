/* SPDX-License-Identifier: Apache-2.0 */
/* Each function of the interface fills in one structure, and one kernel calls OpenBLAS for all of them. */
#include "compat/cuda/libraries/cublas_handle.h"

#include <cblas.h>

enum operation { AXPY, COPY, SWAP, SCALE, SCALE_REAL, NORM, SUM, LARGEST, SMALLEST, DOT, DOT_CONJUGATE };

struct work {
    enum operation operation;
    enum kl_cublas_type type;
    int n;
    struct kl_cublas_scalar alpha;
    const void *x;
    int incx;
    void *y;
    int incy;
    void *result;
};

static void axpy(const struct work *w)
{
    const void *alpha = kl_cublas_value(&w->alpha);

    switch (w->type) {
    case KL_CUBLAS_S:
        cblas_saxpy(w->n, *(const float *)alpha, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_D:
        cblas_daxpy(w->n, *(const double *)alpha, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_C:
        cblas_caxpy(w->n, alpha, w->x, w->incx, w->y, w->incy);
        break;
    default:
        cblas_zaxpy(w->n, alpha, w->x, w->incx, w->y, w->incy);
    }
}

static void copy(const struct work *w)
{
    switch (w->type) {
    case KL_CUBLAS_S:
        cblas_scopy(w->n, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_D:
        cblas_dcopy(w->n, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_C:
        cblas_ccopy(w->n, w->x, w->incx, w->y, w->incy);
        break;
    default:
        cblas_zcopy(w->n, w->x, w->incx, w->y, w->incy);
    }
}

static void swap(const struct work *w)
{
    void *x = (void *)(uintptr_t)w->x;

    switch (w->type) {
    case KL_CUBLAS_S:
        cblas_sswap(w->n, x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_D:
        cblas_dswap(w->n, x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_C:
        cblas_cswap(w->n, x, w->incx, w->y, w->incy);
        break;
    default:
        cblas_zswap(w->n, x, w->incx, w->y, w->incy);
    }
}

static void scale(const struct work *w)
{
    const void *alpha = kl_cublas_value(&w->alpha);
    bool real = w->operation == SCALE_REAL;

    switch (w->type) {
    case KL_CUBLAS_S:
        cblas_sscal(w->n, *(const float *)alpha, w->y, w->incy);
        break;
    case KL_CUBLAS_D:
        cblas_dscal(w->n, *(const double *)alpha, w->y, w->incy);
        break;
    case KL_CUBLAS_C:
        real ? cblas_csscal(w->n, *(const float *)alpha, w->y, w->incy) : cblas_cscal(w->n, alpha, w->y, w->incy);
        break;
    default:
        real ? cblas_zdscal(w->n, *(const double *)alpha, w->y, w->incy) : cblas_zscal(w->n, alpha, w->y, w->incy);
    }
}

static void norm(const struct work *w)
{
    switch (w->type) {
    case KL_CUBLAS_S:
        *(float *)w->result = cblas_snrm2(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_D:
        *(double *)w->result = cblas_dnrm2(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_C:
        *(float *)w->result = cblas_scnrm2(w->n, w->x, w->incx);
        break;
    default:
        *(double *)w->result = cblas_dznrm2(w->n, w->x, w->incx);
    }
}

static void sum(const struct work *w)
{
    switch (w->type) {
    case KL_CUBLAS_S:
        *(float *)w->result = cblas_sasum(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_D:
        *(double *)w->result = cblas_dasum(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_C:
        *(float *)w->result = cblas_scasum(w->n, w->x, w->incx);
        break;
    default:
        *(double *)w->result = cblas_dzasum(w->n, w->x, w->incx);
    }
}

/* From 1; 0 for a vector without elements. */
static void largest(const struct work *w)
{
    if (w->n <= 0 || w->incx <= 0) {
        *(int *)w->result = 0;
        return;
    }
    switch (w->type) {
    case KL_CUBLAS_S:
        *(int *)w->result = 1 + (int)cblas_isamax(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_D:
        *(int *)w->result = 1 + (int)cblas_idamax(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_C:
        *(int *)w->result = 1 + (int)cblas_icamax(w->n, w->x, w->incx);
        break;
    default:
        *(int *)w->result = 1 + (int)cblas_izamax(w->n, w->x, w->incx);
    }
}

static void smallest(const struct work *w)
{
    if (w->n <= 0 || w->incx <= 0) {
        *(int *)w->result = 0;
        return;
    }
    switch (w->type) {
    case KL_CUBLAS_S:
        *(int *)w->result = 1 + (int)cblas_isamin(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_D:
        *(int *)w->result = 1 + (int)cblas_idamin(w->n, w->x, w->incx);
        break;
    case KL_CUBLAS_C:
        *(int *)w->result = 1 + (int)cblas_icamin(w->n, w->x, w->incx);
        break;
    default:
        *(int *)w->result = 1 + (int)cblas_izamin(w->n, w->x, w->incx);
    }
}

static void dot(const struct work *w)
{
    bool conjugate = w->operation == DOT_CONJUGATE;

    switch (w->type) {
    case KL_CUBLAS_S:
        *(float *)w->result = cblas_sdot(w->n, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_D:
        *(double *)w->result = cblas_ddot(w->n, w->x, w->incx, w->y, w->incy);
        break;
    case KL_CUBLAS_C:
        (conjugate ? cblas_cdotc_sub : cblas_cdotu_sub)(w->n, w->x, w->incx, w->y, w->incy, w->result);
        break;
    default:
        (conjugate ? cblas_zdotc_sub : cblas_zdotu_sub)(w->n, w->x, w->incx, w->y, w->incy, w->result);
    }
}

static void run(const struct work *w, unsigned block, unsigned blocks)
{
    static void (*const functions[])(const struct work *) = {
        [AXPY] = axpy, [COPY] = copy, [SWAP] = swap,       [SCALE] = scale,       [SCALE_REAL] = scale,  [NORM] = norm,
        [SUM] = sum,   [DOT] = dot,   [LARGEST] = largest, [SMALLEST] = smallest, [DOT_CONJUGATE] = dot,
    };

    (void)block;
    (void)blocks;
    functions[w->operation](w);
}

KL_LIBRARY_KERNEL(cublas_vector, struct work, run)

static bool has_scalar(enum operation operation)
{
    return operation == AXPY || operation == SCALE || operation == SCALE_REAL;
}

static bool has_result(enum operation operation)
{
    return operation >= NORM;
}

static cublasStatus_t launch(cublasHandle_t handle, struct work w, const void *alpha)
{
    size_t bytes = w.operation == SCALE_REAL ? kl_cublas_bytes(w.type) / 2 : kl_cublas_bytes(w.type);

    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (has_scalar(w.operation)) {
        if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;
        w.alpha = kl_cublas_scalar(handle, alpha, bytes);
    }
    if (has_result(w.operation)) {
        if (!w.result) return CUBLAS_STATUS_INVALID_VALUE;
    } else if (w.n <= 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    return kl_cublas_launch(handle, &kl_kernel_cublas_vector, 1, &w,
                            has_result(w.operation) && handle->pointer_mode == CUBLAS_POINTER_MODE_HOST);
}

#define AXPY_OF(L, type)                                                                                               \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##axpy_v2(cublasHandle_t handle, int n, const type *alpha, const type *x, \
                                                       int incx, type *y, int incy)                                    \
    {                                                                                                                  \
        return launch(handle, (struct work){AXPY, KL_CUBLAS_##L, n, {0}, x, incx, y, incy, NULL}, alpha);              \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##axpy_v2);

#define MOVE_OF(L, type, name, operation, constant)                                                                    \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##name##_v2(cublasHandle_t handle, int n, constant type *x, int incx,     \
                                                         type *y, int incy)                                            \
    {                                                                                                                  \
        return launch(handle, (struct work){operation, KL_CUBLAS_##L, n, {0}, x, incx, y, incy, NULL}, NULL);          \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##name##_v2);

#define SCALE_OF(L, type, name, scalar, operation)                                                                     \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const scalar *alpha, type *x,      \
                                                      int incx)                                                        \
    {                                                                                                                  \
        return launch(handle, (struct work){operation, KL_CUBLAS_##L, n, {0}, NULL, 0, x, incx, NULL}, alpha);         \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##name##_v2);

#define RESULT_OF(L, type, name, value, operation)                                                                     \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const type *x, int incx,           \
                                                      value *result)                                                   \
    {                                                                                                                  \
        return launch(handle, (struct work){operation, KL_CUBLAS_##L, n, {0}, x, incx, NULL, 0, result}, NULL);        \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##name##_v2);

#define DOT_OF(L, type, name, operation)                                                                               \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##name##_v2(cublasHandle_t handle, int n, const type *x, int incx,        \
                                                         const type *y, int incy, type *result)                        \
    {                                                                                                                  \
        return launch(handle,                                                                                          \
                      (struct work){operation, KL_CUBLAS_##L, n, {0}, x, incx, (void *)(uintptr_t)y, incy, result},    \
                      NULL);                                                                                           \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##name##_v2);

#define VECTORS_OF(L, l, type, real, norm_prefix)                                                                      \
    AXPY_OF(L, type)                                                                                                   \
    MOVE_OF(L, type, copy, COPY, const)                                                                                \
    MOVE_OF(L, type, swap, SWAP, )                                                                                     \
    SCALE_OF(L, type, L##scal, type, SCALE)                                                                            \
    RESULT_OF(L, type, norm_prefix##nrm2, real, NORM)                                                                  \
    RESULT_OF(L, type, norm_prefix##asum, real, SUM)                                                                   \
    RESULT_OF(L, type, I##l##amax, int, LARGEST)                                                                       \
    RESULT_OF(L, type, I##l##amin, int, SMALLEST)

VECTORS_OF(S, s, float, float, S)
VECTORS_OF(D, d, double, double, D)
VECTORS_OF(C, c, cuComplex, float, Sc)
VECTORS_OF(Z, z, cuDoubleComplex, double, Dz)
SCALE_OF(C, cuComplex, Csscal, float, SCALE_REAL)
SCALE_OF(Z, cuDoubleComplex, Zdscal, double, SCALE_REAL)
DOT_OF(S, float, dot, DOT)
DOT_OF(D, double, dot, DOT)
DOT_OF(C, cuComplex, dotu, DOT)
DOT_OF(C, cuComplex, dotc, DOT_CONJUGATE)
DOT_OF(Z, cuDoubleComplex, dotu, DOT)
DOT_OF(Z, cuDoubleComplex, dotc, DOT_CONJUGATE)
