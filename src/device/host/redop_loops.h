/* SPDX-License-Identifier: Apache-2.0 */
/**
 * redop_loops.h - loops over elements, from which the tables of kernels are made.
 *
 * Values are computed one at a time and without branches; the compiler makes vectors of the loops.
 */
#ifndef KL_DEVICE_HOST_REDOP_LOOPS_H
#define KL_DEVICE_HOST_REDOP_LOOPS_H

#include "device/host/redop_table.h"
#include "device/host/smallfloat.h"

/* Elements in user memory: at any address, of any declared type. */
#define ELEMENT __attribute__((aligned(1), may_alias))
typedef int8_t i8 ELEMENT;
typedef uint8_t u8 ELEMENT;
typedef int32_t i32 ELEMENT;
typedef uint32_t u32 ELEMENT;
typedef int64_t i64 ELEMENT;
typedef uint64_t u64 ELEMENT;
typedef float f32 ELEMENT;
typedef double f64 ELEMENT;
typedef uint16_t f16 ELEMENT;
typedef uint16_t bf16 ELEMENT;
typedef uint8_t e4m3 ELEMENT;
typedef uint8_t e5m2 ELEMENT;

/* ---- loops: dst may be partial or own, which the pragma declares to be harmless ---- */

#define COMBINE(name, type, value)                                                                                     \
    static inline type name##_of(type a, type b)                                                                       \
    {                                                                                                                  \
        return (type)(value);                                                                                          \
    }                                                                                                                  \
    static void name(const struct kl_redop *op, void *dst, const void *partial, const void *own, size_t count)         \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *from = partial, *mine = own;                                                                       \
                                                                                                                       \
        (void)op;                                                                                                      \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = name##_of(from[i], mine[i]);                    \
    }                                                                                                                  \
    static void name##_four(void *dst, const void *const in[4], size_t count)                                          \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *p = in[0], *q = in[1], *r = in[2], *s = in[3];                                                     \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++)                                                         \
        {                                                                                                              \
            to[i] = name##_of(name##_of(name##_of(p[i], q[i]), r[i]), s[i]);                                           \
        }                                                                                                              \
    }

/* Its entries in a row of the table. */
#define COMBINED_BY(name) .combine = name, .four = name##_four

#define SAME(x) (x)

/* Sum and product in the type that `read` yields, converted back by `write`. */
#define ARITHMETIC(type, read, write)                                                                                  \
    COMBINE(type##_sum, type, write(read(a) + read(b)))                                                                \
    COMBINE(type##_prod, type, write(read(a) * read(b)))

/* The mean of floats: each contribution is scaled, and rounded, before it is added. */
#define FLOAT_MEAN(type, read, write, real, factor)                                                                    \
    static void type##_scale(const struct kl_redop *op, void *dst, const void *own, size_t count)                      \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *mine = own;                                                                                        \
        const real scale = op->factor;                                                                                 \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = write(read(mine[i]) * scale);                   \
    }                                                                                                                  \
    static void type##_add_scaled(const struct kl_redop *op, void *dst, const void *partial, const void *own,          \
                                  size_t count)                                                                        \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const type *from = partial, *mine = own;                                                                       \
        const real scale = op->factor;                                                                                 \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++)                                                         \
        {                                                                                                              \
            to[i] = write(read(from[i]) + read(write(read(mine[i]) * scale)));                                         \
        }                                                                                                              \
    }

/* All functions of a floating type, and its entries in a row of the table. */
#define FLOAT(type, read, write, real, factor)                                                                         \
    ARITHMETIC(type, read, write)                                                                                      \
    FLOAT_MEAN(type, read, write, real, factor)
#define ARITHMETIC_OF(type)                                                                                            \
    [ncclSum] = {COMBINED_BY(type##_sum)}, [ncclProd] = {COMBINED_BY(type##_prod)},                                    \
    [ncclAvg] = {.first = type##_scale, .combine = type##_add_scaled}

/* The mean of integers: `real` divides exactly enough that truncation gives the integer quotient. */
#define INTEGER_MEAN(type, real)                                                                                       \
    static void type##_divide(const struct kl_redop *op, void *dst, size_t count)                                      \
    {                                                                                                                  \
        type *to = dst;                                                                                                \
        const real nranks = (real)op->nranks;                                                                          \
                                                                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] = (type)((real)to[i] / nranks);                   \
    }

#endif
