/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of C are divided into tiles, of which each block computes some with one call of OpenBLAS. Products of fp16 and bf16 are
 * computed in copies as floats. */
#include "compat/cuda/libraries/cublas_gemm.h"

#include "compat/cuda/include/kolo_cuda/abi.h"
#include "src/device/host/smallfloat.h"

#include <cblas.h>
#include <stdlib.h>

enum { TILE_COLUMNS = 64, MAX_BLOCKS = 64 };
static const double FLOPS_OF_BLOCK = 2e6;

/* ---- one product, or some columns of it ---- */

struct matrix {
    const void *at;
    int ld;
};

struct operands {
    CBLAS_TRANSPOSE ta, tb;
    int n;
    struct matrix a, b;
    void *c;
    int ldc;
};

#define MULTIPLY_OF(l, scalar)                                                                                         \
    static void multiply_##l(const struct kl_cublas_gemm *g, const struct operands *o, const void *alpha,              \
                             const void *beta)                                                                         \
    {                                                                                                                  \
        cblas_##l##gemm(CblasColMajor, o->ta, o->tb, g->m, o->n, g->k, scalar(alpha), o->a.at, o->a.ld, o->b.at,       \
                        o->b.ld, scalar(beta), o->c, o->ldc);                                                          \
    }

MULTIPLY_OF(s, KL_CUBLAS_FLOAT)
MULTIPLY_OF(d, KL_CUBLAS_DOUBLE)
MULTIPLY_OF(c, KL_CUBLAS_COMPLEX)
MULTIPLY_OF(z, KL_CUBLAS_COMPLEX)

static void multiply(const struct kl_cublas_gemm *g, int n, struct matrix a, struct matrix b, void *c, int ldc,
                     const void *alpha, const void *beta)
{
    static void (*const functions[])(const struct kl_cublas_gemm *, const struct operands *, const void *,
                                     const void *) = KL_CUBLAS_ROW(multiply);
    static const CBLAS_TRANSPOSE forms[] = {CblasNoTrans, CblasTrans, CblasConjTrans};
    const struct operands o = {forms[g->trans_a], forms[g->trans_b], n, a, b, c, ldc};

    functions[g->sum](g, &o, alpha, beta);
}

/* ---- 16-bit elements ---- */

static bool small(cudaDataType type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF;
}

static void widen(float *to, size_t to_ld, const uint16_t *from, size_t ld, size_t rows, size_t columns,
                  cudaDataType type)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++)
            to[j * to_ld + i] = type == CUDA_R_16F ? kl_f16_decode(from[j * ld + i]) : kl_bf16_decode(from[j * ld + i]);
}

static void narrow(uint16_t *to, size_t ld, const float *from, size_t rows, size_t columns, cudaDataType type)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++)
            to[j * ld + i] =
                type == CUDA_R_16F ? kl_f16_encode(from[j * rows + i]) : kl_bf16_encode(from[j * rows + i]);
}

/* A matrix as floats: its own, or a copy in `room`, which gets on. */
static struct matrix as_floats(struct matrix m, size_t rows, size_t columns, cudaDataType type, float **room)
{
    struct matrix copy = {*room, (int)rows};

    widen(*room, rows, m.at, (size_t)m.ld, rows, columns, type);
    *room += rows * columns;
    return copy;
}

static void multiply_small(const struct kl_cublas_gemm *g, int n, struct matrix a, struct matrix b, void *c,
                           const float *alpha, const float *beta)
{
    size_t m = (size_t)g->m, k = (size_t)g->k, columns = (size_t)n;
    bool narrow_c = small(g->type_c);
    float *memory = malloc((m * k + k * columns + m * columns) * sizeof *memory + 1), *room = memory;

    if (!memory) __koloTrap("no memory for copies of matrices as floats");
    a = g->trans_a == CUBLAS_OP_N ? as_floats(a, m, k, g->type, &room) : as_floats(a, k, m, g->type, &room);
    b = g->trans_b == CUBLAS_OP_N ? as_floats(b, k, columns, g->type, &room) : as_floats(b, columns, k, g->type, &room);
    if (!narrow_c) {
        multiply(g, n, a, b, c, g->ldc, alpha, beta);
    } else {
        if (*beta != 0) widen(room, m, c, (size_t)g->ldc, m, columns, g->type_c);
        multiply(g, n, a, b, room, g->m, alpha, beta);
        narrow(c, (size_t)g->ldc, room, m, columns, g->type_c);
    }
    free(memory);
}

/* ---- tiles ---- */

static size_t bytes_of(cudaDataType type)
{
    switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_32F:
        return 4;
    case CUDA_C_64F:
        return 16;
    default:
        return 8;
    }
}

static const void *element(const struct kl_cublas_gemm *g, const void *base, size_t which, long long stride,
                           size_t bytes)
{
    return g->arrays ? ((const void *const *)base)[which]
                     : (const char *)base + (long long)which * stride * (long long)bytes;
}

static size_t tiles(const struct kl_cublas_gemm *g)
{
    return ((size_t)g->n + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

/* Columns [from, from + n) of product `which`. */
static void multiply_columns(const struct kl_cublas_gemm *g, size_t which, int from, int n)
{
    size_t in = bytes_of(g->type), out = bytes_of(g->type_c), first = (size_t)from;
    struct matrix a = {element(g, g->a, which, g->stride_a, in), g->lda};
    struct matrix b = {(const char *)element(g, g->b, which, g->stride_b, in) +
                           first * in * (g->trans_b == CUBLAS_OP_N ? (size_t)g->ldb : 1),
                       g->ldb};
    char *c = (char *)(uintptr_t)element(g, g->c, which, g->stride_c, out) + first * out * (size_t)g->ldc;
    const void *alpha = kl_cublas_value(&g->alpha), *beta = kl_cublas_value(&g->beta);
    float wide[2];

    if (g->half_scalars) {
        wide[0] = kl_f16_decode(*(const uint16_t *)alpha);
        wide[1] = kl_f16_decode(*(const uint16_t *)beta);
        alpha = &wide[0];
        beta = &wide[1];
    }
    if (small(g->type))
        multiply_small(g, n, a, b, c, alpha, beta);
    else
        multiply(g, n, a, b, c, g->ldc, alpha, beta);
}

/* Neighbouring tiles of one product are one call. */
static void multiply_part(const struct kl_cublas_gemm *g, unsigned block, unsigned blocks)
{
    size_t each = tiles(g), at, end = kl_library_part(each * (size_t)g->batch, block, blocks, &at);

    while (at < end) {
        size_t which = at / each, first = at % each, more = end - at < each - first ? end - at : each - first;
        int from = (int)(first * TILE_COLUMNS), to = (int)((first + more) * TILE_COLUMNS);

        multiply_columns(g, which, from, (to < g->n ? to : g->n) - from);
        at += more;
    }
}

KL_LIBRARY_KERNEL(cublas_gemm, struct kl_cublas_gemm, multiply_part)

static unsigned blocks_for(const struct kl_cublas_gemm *g)
{
    double flops = 2.0 * g->m * g->n * g->k * g->batch, blocks = flops / FLOPS_OF_BLOCK + 1;
    double most = (double)tiles(g) * g->batch;

    blocks = blocks < most ? blocks : most;
    return blocks < MAX_BLOCKS ? (unsigned)blocks : MAX_BLOCKS;
}

/* ---- checks ---- */

static bool leads(int ld, cublasOperation_t trans, int rows, int columns)
{
    int least = trans == CUBLAS_OP_N ? rows : columns;

    return ld >= (least > 1 ? least : 1);
}

static bool is_valid(const struct kl_cublas_gemm *g)
{
    return (unsigned)g->trans_a <= CUBLAS_OP_C && (unsigned)g->trans_b <= CUBLAS_OP_C && g->m >= 0 && g->n >= 0 &&
           g->k >= 0 && g->batch >= 0 && leads(g->lda, g->trans_a, g->m, g->k) &&
           leads(g->ldb, g->trans_b, g->k, g->n) && leads(g->ldc, CUBLAS_OP_N, g->m, g->n);
}

cublasStatus_t kl_cublas_gemm(cublasHandle_t handle, struct kl_cublas_gemm *g, const void *alpha, const void *beta)
{
    size_t bytes = g->half_scalars ? 2 : kl_cublas_bytes(g->sum);

    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_valid(g) || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (g->m == 0 || g->n == 0 || g->batch == 0) return CUBLAS_STATUS_SUCCESS;
    g->alpha = kl_cublas_scalar(handle, alpha, bytes);
    g->beta = kl_cublas_scalar(handle, beta, bytes);
    return kl_cublas_launch(handle, &kl_kernel_cublas_gemm, blocks_for(g), g, false);
}
