/* SPDX-License-Identifier: Apache-2.0 */
/**
 * redop_reference.h - for tests: reductions one element at a time, slow and from the definition of numbers, sharing no
 * code with the kernels. An element is a code in the low bits of a uint64_t.
 */
#ifndef KL_DEVICE_HOST_REDOP_REFERENCE_H
#define KL_DEVICE_HOST_REDOP_REFERENCE_H

#include "include/nccl.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum kind { UNSIGNED, SIGNED, FLOAT };

static const struct type {
    ncclDataType_t type;
    const char *name;
    int bits;
    enum kind kind;
    int mantissa, bias;
    uint64_t largest; /* finite magnitude */
    uint64_t nan;
    bool saturates;
} types[ncclNumTypes] = {
    {ncclInt8, "int8", 8, SIGNED, 0, 0, 0, 0, false},
    {ncclUint8, "uint8", 8, UNSIGNED, 0, 0, 0, 0, false},
    {ncclInt32, "int32", 32, SIGNED, 0, 0, 0, 0, false},
    {ncclUint32, "uint32", 32, UNSIGNED, 0, 0, 0, 0, false},
    {ncclInt64, "int64", 64, SIGNED, 0, 0, 0, 0, false},
    {ncclUint64, "uint64", 64, UNSIGNED, 0, 0, 0, 0, false},
    {ncclFloat16, "half", 16, FLOAT, 10, 15, 0x7bff, 0x7e00, false},
    {ncclFloat32, "float", 32, FLOAT, 23, 127, 0x7f7fffff, 0x7fc00000, false},
    {ncclFloat64, "double", 64, FLOAT, 52, 1023, 0x7fefffffffffffff, 0x7ff8000000000000, false},
    {ncclBfloat16, "bfloat16", 16, FLOAT, 7, 127, 0x7f7f, 0x7fc0, false},
    {ncclFloat8e4m3, "f8e4m3", 8, FLOAT, 3, 7, 0x7e, 0x7f, true},
    {ncclFloat8e5m2, "f8e5m2", 8, FLOAT, 2, 15, 0x7b, 0x7e, true},
};

static inline uint64_t mask_of(const struct type *t)
{
    return UINT64_MAX >> (64 - t->bits);
}

static inline uint64_t sign_of(const struct type *t)
{
    return 1ull << (t->bits - 1);
}

static inline int64_t signed_value(const struct type *t, uint64_t code)
{
    return (int64_t)(code << (64 - t->bits)) >> (64 - t->bits);
}

static inline double value_of(const struct type *t, uint64_t code)
{
    const uint64_t magnitude = code & (sign_of(t) - 1), one = 1ull << t->mantissa;
    const int exponent = (int)(magnitude >> t->mantissa);
    const double fraction = (double)(magnitude & (one - 1));
    double value;

    if (magnitude > t->largest + 1 || (magnitude > t->largest && t->nan == t->largest + 1)) return NAN;
    if (magnitude > t->largest)
        value = INFINITY;
    else if (exponent)
        value = ldexp((double)one + fraction, exponent - t->bias - t->mantissa);
    else
        value = ldexp(fraction, 1 - t->bias - t->mantissa);
    return code & sign_of(t) ? -value : value;
}

/* The largest finite magnitude with a value of at most x >= 0. */
static inline uint64_t magnitude_below(const struct type *t, double x)
{
    uint64_t low = 0, high = t->largest;

    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;

        if (value_of(t, middle) <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The code nearest to x, the even one of two that are equally near. */
static inline uint64_t nearest(const struct type *t, double x)
{
    const double size = fabs(x);
    const uint64_t sign = signbit(x) ? sign_of(t) : 0;
    uint64_t low;
    double below, above;

    if (isnan(x)) return t->nan;
    low = magnitude_below(t, size);
    if (low == t->largest && t->saturates) return sign | low;
    if (isinf(x)) return sign | (t->largest + 1);
    below = size - value_of(t, low);
    above = low < t->largest ? value_of(t, low + 1) - size : 2 * value_of(t, low) - value_of(t, low - 1) - size;
    return sign | (above < below || (above == below && low % 2) ? low + 1 : low);
}

/* Floats compute in float, doubles in double; the result is rounded to the type. */
static inline uint64_t float_arithmetic(const struct type *t, ncclRedOp_t op, double x, double y)
{
    const float narrow = op == ncclProd ? (float)x * (float)y : (float)x + (float)y;
    const double wide = op == ncclProd ? x * y : x + y;
    uint64_t code;

    if (t->bits < 32) return nearest(t, narrow);
    if (t->bits == 32) {
        uint32_t word;

        memcpy(&word, &narrow, sizeof word);
        return isnan(narrow) ? t->nan : word;
    }
    memcpy(&code, &wide, sizeof code);
    return isnan(wide) ? t->nan : code;
}

static inline uint64_t extreme(const struct type *t, ncclRedOp_t op, uint64_t a, uint64_t b)
{
    bool less;

    if (t->kind == FLOAT) {
        const double x = value_of(t, a), y = value_of(t, b);

        if (isnan(x) || isnan(y)) return t->nan;
        less = x < y || (x == y && signbit(x) && !signbit(y));
    } else {
        less = t->kind == SIGNED ? signed_value(t, a) < signed_value(t, b) : a < b;
    }
    return less == (op == ncclMax) ? b : a;
}

static inline uint64_t reference_first(const struct type *t, ncclRedOp_t op, uint64_t own, int nranks)
{
    const double scale = t->bits < 64 ? (float)(1.0 / nranks) : 1.0 / nranks;

    if (op != ncclAvg || t->kind != FLOAT) return own;
    return float_arithmetic(t, ncclProd, value_of(t, own), t->bits < 32 ? value_of(t, nearest(t, scale)) : scale);
}

static inline uint64_t reference_combine(const struct type *t, ncclRedOp_t op, uint64_t a, uint64_t b, int nranks)
{
    if (op == ncclMax || op == ncclMin) return extreme(t, op, a, b);
    if (t->kind == FLOAT) {
        return float_arithmetic(t, op, value_of(t, a), value_of(t, reference_first(t, op, b, nranks)));
    }
    return (op == ncclProd ? a * b : a + b) & mask_of(t);
}

static inline uint64_t reference_last(const struct type *t, ncclRedOp_t op, uint64_t result, int nranks)
{
    if (op != ncclAvg || t->kind == FLOAT) return result;
    if (t->kind == SIGNED) return (uint64_t)(signed_value(t, result) / nranks) & mask_of(t);
    return result / (uint64_t)nranks;
}

/* ---- arrays of elements ---- */

static inline uint64_t get(const struct type *t, const void *array, size_t i)
{
    uint64_t code = 0;

    memcpy(&code, (const char *)array + i * (size_t)t->bits / 8, (size_t)t->bits / 8);
    return code;
}

static inline void put(const struct type *t, void *array, size_t i, uint64_t code)
{
    memcpy((char *)array + i * (size_t)t->bits / 8, &code, (size_t)t->bits / 8);
}

/* splitmix64 */
static inline uint64_t random_bits(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

enum { SPECIALS = 12 };

/* Boundary magnitudes: zeros, subnormals, the largest, infinity, quiet and signalling NaN, ... */
static inline uint64_t special(const struct type *t, uint64_t which)
{
    const uint64_t one = (uint64_t)t->bias << t->mantissa, normal = 1ull << t->mantissa;
    const uint64_t max = t->largest, top = sign_of(t) - 1;
    const uint64_t floats[SPECIALS] = {0,   1,       normal - 1, normal,  one, one + 1, one + normal,
                                       max, max - 1, max + 1,    max + 2, top};
    const uint64_t integers[SPECIALS] = {0, 1, 2, 3, 7, 10, 16, 100, top / 2, top - 1, top, 64};

    return (t->kind == FLOAT ? floats : integers)[which % SPECIALS] & top;
}

/* One of these, a float of ordinary size, or random bits. */
static inline uint64_t sample(const struct type *t, uint64_t *seed)
{
    const uint64_t bits = random_bits(seed), one = (uint64_t)t->bias << t->mantissa;
    const uint64_t sign = bits >> 32 & 1 ? sign_of(t) : 0;

    switch (bits >> 33 & 3) {
    case 0:
        return special(t, bits) | sign;
    case 1: /* so that sums have to round */
        return ((one + bits % (8ull << t->mantissa)) & (sign_of(t) - 1)) | sign;
    default:
        return random_bits(seed) & mask_of(t);
    }
}

#endif
