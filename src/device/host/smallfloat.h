/* SPDX-License-Identifier: Apache-2.0 */
/**
 * smallfloat.h - fp16, bf16 and fp8 to and from float, in integer and float arithmetic without branches or tables, so
 * that loops over arrays of them become vector code for any instruction set.
 *
 * Reading is exact. Writing rounds to nearest even, with subnormals; every NaN becomes the one positive quiet NaN of
 * the type. Beyond the largest finite value fp16 and bf16 become infinite; fp8 saturates, infinity included.
 * e4m3 has no infinity and one NaN per sign (the OCP "FN" flavour); e5m2 is the upper byte of an fp16.
 *
 * Threads: pure functions, in the default floating-point environment (round to nearest).
 * Source:  IEEE 754-2019; OCP 8-bit Floating Point Specification (OFP8) 1.0; the CUDA math API for saturation.
 */
#ifndef KL_DEVICE_HOST_SMALLFLOAT_H
#define KL_DEVICE_HOST_SMALLFLOAT_H

#include <stdint.h>
#include <string.h>

/** A format of sign, exponent and `mantissa` bits; the fields are the constants of its conversions. */
struct kl_smallfloat {
    int mantissa;      /* bits */
    int bias;          /* of the exponent */
    int32_t sign;      /* the sign bit */
    int32_t nonfinite; /* the first magnitude that is not finite */
    int32_t nan;       /* the quiet NaN */
    float limit;       /* larger values become this one: the largest finite one, or 2^n that is written as infinity */
};

static const struct kl_smallfloat kl_f16 = {10, 15, 0x8000, 0x7c00, 0x7e00, 65536.0f};
static const struct kl_smallfloat kl_e4m3 = {3, 7, 0x80, 0x7f, 0x7f, 448.0f};
static const struct kl_smallfloat kl_e5m2 = {2, 15, 0x80, 0x7c, 0x7e, 57344.0f};

static inline float kl_float_from_bits(int32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int32_t kl_float_bits(float value)
{
    int32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float kl_smallfloat_decode(int32_t code, const struct kl_smallfloat f)
{
    const int32_t magnitude = code & (f.sign - 1);
    const float subnormal = (float)magnitude * kl_float_from_bits((128 - f.bias - f.mantissa) << 23);
    int32_t bits = (magnitude << (23 - f.mantissa)) + ((127 - f.bias) << 23);

    bits = magnitude >> f.mantissa ? bits : kl_float_bits(subnormal);
    bits |= magnitude >= f.nonfinite ? 0x7f800000 : 0;
    return kl_float_from_bits(bits | (code & f.sign ? INT32_MIN : 0));
}

/*
 * Adding 2^(23-m) times the value's binade leaves room for m mantissa bits below, and the addition rounds to nearest
 * even. Values below the normal ones use the binade of the smallest normal, which gives subnormals the same way.
 */
static inline int32_t kl_smallfloat_encode(float value, const struct kl_smallfloat f)
{
    const int shift = 23 - f.mantissa;
    const int32_t smallest = (128 - f.bias) << 23, limit = kl_float_bits(f.limit);
    const int32_t bits = kl_float_bits(value), magnitude = bits & INT32_MAX;
    const int32_t bounded = magnitude < limit ? magnitude : limit;
    const int32_t exponent = bounded & 0x7f800000;
    const int32_t binade = exponent > smallest ? exponent : smallest;
    const int32_t anchor = binade + (shift << 23);
    const int32_t significand = kl_float_bits(kl_float_from_bits(bounded) + kl_float_from_bits(anchor)) - anchor;
    const int32_t code = (significand + ((binade - smallest) >> shift)) | (bits < 0 ? f.sign : 0);

    return magnitude > 0x7f800000 ? f.nan : code;
}

static inline float kl_f16_decode(uint16_t code)
{
    return kl_smallfloat_decode(code, kl_f16);
}

static inline uint16_t kl_f16_encode(float value)
{
    return (uint16_t)kl_smallfloat_encode(value, kl_f16);
}

static inline float kl_e4m3_decode(uint8_t code)
{
    return kl_smallfloat_decode(code, kl_e4m3);
}

static inline uint8_t kl_e4m3_encode(float value)
{
    return (uint8_t)kl_smallfloat_encode(value, kl_e4m3);
}

static inline float kl_e5m2_decode(uint8_t code)
{
    return kl_smallfloat_decode(code, kl_e5m2);
}

static inline uint8_t kl_e5m2_encode(float value)
{
    return (uint8_t)kl_smallfloat_encode(value, kl_e5m2);
}

/* A float's upper half, for which rounding needs less. */
static inline float kl_bf16_decode(uint16_t code)
{
    return kl_float_from_bits((int32_t)((uint32_t)code << 16));
}

static inline uint16_t kl_bf16_encode(float value)
{
    const uint32_t bits = (uint32_t)kl_float_bits(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)((bits & INT32_MAX) > 0x7f800000 ? 0x7fc0 : rounded);
}

#endif
