/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct kl_value_type types[ncclNumTypes] = {
    [ncclInt8]       = {KL_VALUE_SIGNED,   1, 0,  0,  INT8_MAX,       0,    0},
    [ncclUint8]      = {KL_VALUE_UNSIGNED, 1, 0,  0,  UINT8_MAX,      0,    0},
    [ncclInt32]      = {KL_VALUE_SIGNED,   4, 0,  0,  INT32_MAX,      0,    0},
    [ncclUint32]     = {KL_VALUE_UNSIGNED, 4, 0,  0,  UINT32_MAX,     0,    0},
    [ncclInt64]      = {KL_VALUE_SIGNED,   8, 0,  0,  INT64_C(1) << 62, 0,  0},
    [ncclUint64]     = {KL_VALUE_UNSIGNED, 8, 0,  0,  INT64_C(1) << 62, 0,  0},
    [ncclFloat16]    = {KL_VALUE_FLOAT,    2, 5,  10, 1 << 11,        14,   24},
    [ncclFloat32]    = {KL_VALUE_FLOAT,    4, 8,  23, 1 << 24,        126,  149},
    [ncclFloat64]    = {KL_VALUE_FLOAT,    8, 11, 52, INT64_C(1) << 53, 1022, 1074},
    [ncclBfloat16]   = {KL_VALUE_FLOAT,    2, 8,  7,  1 << 8,         126,  133},
    [ncclFloat8e4m3] = {KL_VALUE_FLOAT,    1, 4,  3,  1 << 4,         6,    9},
    [ncclFloat8e5m2] = {KL_VALUE_FLOAT,    1, 5,  2,  1 << 3,         14,   16},
};
/* clang-format on */

const struct kl_value_type *kl_value_type(ncclDataType_t type)
{
    return &types[type];
}

/* Little-endian, as all machines Kolo runs on. */
static void put_bits(const struct kl_value_type *t, void *at, uint64_t bits)
{
    memcpy(at, &bits, t->bytes);
}

uint64_t kl_value_bits(const struct kl_value_type *t, const void *at)
{
    uint64_t bits = 0;

    memcpy(&bits, at, t->bytes);
    return bits;
}

static uint64_t sign_bit(const struct kl_value_type *t)
{
    return UINT64_C(1) << (8 * t->bytes - 1);
}

static int is_e4m3(const struct kl_value_type *t)
{
    return t == &types[ncclFloat8e4m3];
}

/* The bits of the largest finite value. */
static uint64_t largest(const struct kl_value_type *t)
{
    uint64_t infinity = ((UINT64_C(1) << t->exponent_bits) - 1) << t->mantissa_bits;

    return is_e4m3(t) ? 0x7e : infinity - 1;
}

static int bias(const struct kl_value_type *t)
{
    return (1 << (t->exponent_bits - 1)) - 1;
}

/* The exponent of the last place of |value|: fixed below the smallest normal value. */
static int last_place(const struct kl_value_type *t, long double value)
{
    int exponent = 0, smallest = 1 - bias(t);

    frexpl(value, &exponent);
    if (value == 0 || exponent - 1 < smallest) exponent = smallest + 1;
    return exponent - 1 - (int)t->mantissa_bits;
}

long double kl_value_ulp(const struct kl_value_type *t, long double value)
{
    return ldexpl(1, last_place(t, value));
}

void kl_value_put_nearest(const struct kl_value_type *t, void *at, long double value)
{
    int place = last_place(t, value);
    uint64_t steps = (uint64_t)rintl(ldexpl(fabsl(value), -place)); /* to nearest even, the default mode */

    /* A value is its steps within a binade, counted from the binade's start; a carry moves on to the next. */
    uint64_t binade = (uint64_t)(place + (int)t->mantissa_bits + bias(t) - 1);
    uint64_t bits = (binade << t->mantissa_bits) + steps;
    if (bits > largest(t)) bits = largest(t);
    put_bits(t, at, signbit(value) ? bits | sign_bit(t) : bits);
}

void kl_value_put_int(const struct kl_value_type *t, void *at, int64_t value)
{
    if (t->kind == KL_VALUE_FLOAT)
        kl_value_put_nearest(t, at, (long double)value);
    else
        put_bits(t, at, (uint64_t)value);
}

void kl_value_put_power(const struct kl_value_type *t, void *at, int exponent)
{
    put_bits(t, at, (uint64_t)(exponent + bias(t)) << t->mantissa_bits);
}

int64_t kl_value_order(const struct kl_value_type *t, uint64_t bits)
{
    int64_t magnitude = (int64_t)(bits & (sign_bit(t) - 1));

    return bits & sign_bit(t) ? -magnitude : magnitude;
}

static double to_double(const struct kl_value_type *t, uint64_t bits)
{
    uint64_t magnitude = bits & (sign_bit(t) - 1);
    uint64_t mantissa = magnitude & ((UINT64_C(1) << t->mantissa_bits) - 1);
    int exponent = (int)(magnitude >> t->mantissa_bits);
    double value;

    if (magnitude > largest(t))
        value = is_e4m3(t) || mantissa ? (double)NAN : (double)INFINITY;
    else if (!exponent)
        value = ldexp((double)mantissa, 1 - bias(t) - (int)t->mantissa_bits);
    else
        value = ldexp((double)(mantissa | UINT64_C(1) << t->mantissa_bits), exponent - bias(t) - (int)t->mantissa_bits);
    return bits & sign_bit(t) ? -value : value;
}

void kl_value_print(const struct kl_value_type *t, const void *at, char *text, size_t size)
{
    uint64_t bits = kl_value_bits(t, at);
    unsigned unused = 64 - 8 * t->bytes;

    if (t->kind == KL_VALUE_FLOAT)
        snprintf(text, size, "%.*g", t->bytes == 8 ? 17 : 9, to_double(t, bits));
    else if (t->kind == KL_VALUE_UNSIGNED)
        snprintf(text, size, "%" PRIu64, bits);
    else
        snprintf(text, size, "%" PRId64, (int64_t)(bits << unused) >> unused);
}
