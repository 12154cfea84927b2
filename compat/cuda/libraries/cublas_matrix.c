/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a matrix and a vector, and of two vectors. */
#include "compat/cuda/libraries/cublas_handle.h"

#include <cblas.h>

struct product {
    enum kl_cublas_type type;
    CBLAS_TRANSPOSE trans;
    int m, n;
    struct kl_cublas_scalar alpha, beta;
    const void *a;
    int lda;
    const void *x;
    int incx;
    void *y;
    int incy;
};

#define MULTIPLY_OF(l, scalar)                                                                                         \
    static void multiply_##l(const struct product *p, const void *alpha, const void *beta)                             \
    {                                                                                                                  \
        cblas_##l##gemv(CblasColMajor, p->trans, p->m, p->n, scalar(alpha), p->a, p->lda, p->x, p->incx, scalar(beta), \
                        p->y, p->incy);                                                                                \
    }

MULTIPLY_OF(s, KL_CUBLAS_FLOAT)
MULTIPLY_OF(d, KL_CUBLAS_DOUBLE)
MULTIPLY_OF(c, KL_CUBLAS_COMPLEX)
MULTIPLY_OF(z, KL_CUBLAS_COMPLEX)

static void multiply(const struct product *p, unsigned block, unsigned blocks)
{
    static void (*const functions[])(const struct product *, const void *, const void *) = KL_CUBLAS_ROW(multiply);

    (void)block;
    (void)blocks;
    functions[p->type](p, kl_cublas_value(&p->alpha), kl_cublas_value(&p->beta));
}

KL_LIBRARY_KERNEL(cublas_gemv, struct product, multiply)

static cublasStatus_t gemv(cublasHandle_t handle, struct product p, cublasOperation_t trans, const void *alpha,
                           const void *beta)
{
    static const CBLAS_TRANSPOSE forms[] = {CblasNoTrans, CblasTrans, CblasConjTrans};

    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((unsigned)trans > CUBLAS_OP_C || p.m < 0 || p.n < 0 || p.lda < (p.m > 1 ? p.m : 1) || !p.incx || !p.incy ||
        !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p.m == 0 || p.n == 0) return CUBLAS_STATUS_SUCCESS;
    p.trans = forms[trans];
    p.alpha = kl_cublas_scalar(handle, alpha, kl_cublas_bytes(p.type));
    p.beta = kl_cublas_scalar(handle, beta, kl_cublas_bytes(p.type));
    return kl_cublas_launch(handle, &kl_kernel_cublas_gemv, 1, &p, false);
}

/* y is constant here, and the matrix is changed. */
struct outer {
    enum kl_cublas_type type;
    bool conjugate;
    int m, n;
    struct kl_cublas_scalar alpha;
    const void *x, *y;
    int incx, incy;
    void *a;
    int lda;
};

#define ADD_OF(l, scalar, call)                                                                                        \
    static void add_##l(const struct outer *o, const void *alpha)                                                      \
    {                                                                                                                  \
        (call)(CblasColMajor, o->m, o->n, scalar(alpha), o->x, o->incx, o->y, o->incy, o->a, o->lda);                  \
    }

ADD_OF(s, KL_CUBLAS_FLOAT, cblas_sger)
ADD_OF(d, KL_CUBLAS_DOUBLE, cblas_dger)
ADD_OF(c, KL_CUBLAS_COMPLEX, o->conjugate ? cblas_cgerc : cblas_cgeru)
ADD_OF(z, KL_CUBLAS_COMPLEX, o->conjugate ? cblas_zgerc : cblas_zgeru)

static void add_outer(const struct outer *o, unsigned block, unsigned blocks)
{
    static void (*const functions[])(const struct outer *, const void *) = KL_CUBLAS_ROW(add);

    (void)block;
    (void)blocks;
    functions[o->type](o, kl_cublas_value(&o->alpha));
}

KL_LIBRARY_KERNEL(cublas_ger, struct outer, add_outer)

static cublasStatus_t ger(cublasHandle_t handle, struct outer o, const void *alpha)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (o.m < 0 || o.n < 0 || o.lda < (o.m > 1 ? o.m : 1) || !o.incx || !o.incy || !alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (o.m == 0 || o.n == 0) return CUBLAS_STATUS_SUCCESS;
    o.alpha = kl_cublas_scalar(handle, alpha, kl_cublas_bytes(o.type));
    return kl_cublas_launch(handle, &kl_kernel_cublas_ger, 1, &o, false);
}

#define GEMV_OF(L, element)                                                                                            \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##gemv_v2(                                                                \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const element *alpha, const element *A, int lda, \
        const element *x, int incx, const element *beta, element *y, int incy)                                         \
    {                                                                                                                  \
        return gemv(handle,                                                                                            \
                    (struct product){.type = KL_CUBLAS_##L,                                                            \
                                     .m = m,                                                                           \
                                     .n = n,                                                                           \
                                     .a = A,                                                                           \
                                     .lda = lda,                                                                       \
                                     .x = x,                                                                           \
                                     .incx = incx,                                                                     \
                                     .y = y,                                                                           \
                                     .incy = incy},                                                                    \
                    trans, alpha, beta);                                                                               \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##gemv_v2);

#define GER_OF(L, name, type, conjugate)                                                                               \
    KL_CUBLAS_EXPORT cublasStatus_t cublas##L##name##_v2(cublasHandle_t handle, int m, int n, const type *alpha,       \
                                                         const type *x, int incx, const type *y, int incy, type *A,    \
                                                         int lda)                                                      \
    {                                                                                                                  \
        return ger(handle, (struct outer){KL_CUBLAS_##L, conjugate, m, n, {0}, x, y, incx, incy, A, lda}, alpha);      \
    }                                                                                                                  \
    KL_CUBLAS_ENTRY(cublas##L##name##_v2);

GEMV_OF(S, float)
GEMV_OF(D, double)
GEMV_OF(C, cuComplex)
GEMV_OF(Z, cuDoubleComplex)
GER_OF(S, ger, float, false)
GER_OF(D, ger, double, false)
GER_OF(C, geru, cuComplex, false)
GER_OF(C, gerc, cuComplex, true)
GER_OF(Z, geru, cuDoubleComplex, false)
GER_OF(Z, gerc, cuDoubleComplex, true)
