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

/* Without elements there is no largest one. */
static bool has_elements(const struct work *w)
{
    return w->n > 0 && w->incx > 0;
}

/* The functions of a type; `norm`: the letters of its norms. Indices count from 1; 0: there is none. */
#define FUNCTIONS_OF(l, scalar, real, norm)                                                                            \
    static void axpy_##l(const struct work *w)                                                                         \
    {                                                                                                                  \
        cblas_##l##axpy(w->n, scalar(kl_cublas_value(&w->alpha)), w->x, w->incx, w->y, w->incy);                       \
    }                                                                                                                  \
    static void copy_##l(const struct work *w)                                                                         \
    {                                                                                                                  \
        cblas_##l##copy(w->n, w->x, w->incx, w->y, w->incy);                                                           \
    }                                                                                                                  \
    static void swap_##l(const struct work *w)                                                                         \
    {                                                                                                                  \
        cblas_##l##swap(w->n, (void *)(uintptr_t)w->x, w->incx, w->y, w->incy);                                        \
    }                                                                                                                  \
    static void scale_##l(const struct work *w)                                                                        \
    {                                                                                                                  \
        cblas_##l##scal(w->n, scalar(kl_cublas_value(&w->alpha)), w->y, w->incy);                                      \
    }                                                                                                                  \
    static void norm_##l(const struct work *w)                                                                         \
    {                                                                                                                  \
        *(real *)w->result = cblas_##norm##nrm2(w->n, w->x, w->incx);                                                  \
    }                                                                                                                  \
    static void sum_##l(const struct work *w)                                                                          \
    {                                                                                                                  \
        *(real *)w->result = cblas_##norm##asum(w->n, w->x, w->incx);                                                  \
    }                                                                                                                  \
    static void largest_##l(const struct work *w)                                                                      \
    {                                                                                                                  \
        *(int *)w->result = has_elements(w) ? 1 + (int)cblas_i##l##amax(w->n, w->x, w->incx) : 0;                      \
    }                                                                                                                  \
    static void smallest_##l(const struct work *w)                                                                     \
    {                                                                                                                  \
        *(int *)w->result = has_elements(w) ? 1 + (int)cblas_i##l##amin(w->n, w->x, w->incx) : 0;                      \
    }

FUNCTIONS_OF(s, KL_CUBLAS_FLOAT, float, s)
FUNCTIONS_OF(d, KL_CUBLAS_DOUBLE, double, d)
FUNCTIONS_OF(c, KL_CUBLAS_COMPLEX, float, sc)
FUNCTIONS_OF(z, KL_CUBLAS_COMPLEX, double, dz)

#define REAL_DOT_OF(l, real)                                                                                           \
    static void dot_##l(const struct work *w)                                                                          \
    {                                                                                                                  \
        *(real *)w->result = cblas_##l##dot(w->n, w->x, w->incx, w->y, w->incy);                                       \
    }

#define COMPLEX_OF(l, scale, scalar)                                                                                   \
    static void scale_real_##l(const struct work *w)                                                                   \
    {                                                                                                                  \
        cblas_##scale(w->n, scalar(kl_cublas_value(&w->alpha)), w->y, w->incy);                                        \
    }                                                                                                                  \
    static void dot_##l(const struct work *w)                                                                          \
    {                                                                                                                  \
        cblas_##l##dotu_sub(w->n, w->x, w->incx, w->y, w->incy, w->result);                                            \
    }                                                                                                                  \
    static void dot_conjugate_##l(const struct work *w)                                                                \
    {                                                                                                                  \
        cblas_##l##dotc_sub(w->n, w->x, w->incx, w->y, w->incy, w->result);                                            \
    }

REAL_DOT_OF(s, float)
REAL_DOT_OF(d, double)
COMPLEX_OF(c, csscal, KL_CUBLAS_FLOAT)
COMPLEX_OF(z, zdscal, KL_CUBLAS_DOUBLE)

static void run(const struct work *w, unsigned block, unsigned blocks)
{
    static void (*const functions[][KL_CUBLAS_TYPES])(const struct work *) = {
        [AXPY] = KL_CUBLAS_ROW(axpy),
        [COPY] = KL_CUBLAS_ROW(copy),
        [SWAP] = KL_CUBLAS_ROW(swap),
        [SCALE] = KL_CUBLAS_ROW(scale),
        [SCALE_REAL] = {[KL_CUBLAS_C] = scale_real_c, [KL_CUBLAS_Z] = scale_real_z},
        [NORM] = KL_CUBLAS_ROW(norm),
        [SUM] = KL_CUBLAS_ROW(sum),
        [LARGEST] = KL_CUBLAS_ROW(largest),
        [SMALLEST] = KL_CUBLAS_ROW(smallest),
        [DOT] = KL_CUBLAS_ROW(dot),
        [DOT_CONJUGATE] = {[KL_CUBLAS_C] = dot_conjugate_c, [KL_CUBLAS_Z] = dot_conjugate_z},
    };

    (void)block;
    (void)blocks;
    functions[w->operation][w->type](w);
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
