/* SPDX-License-Identifier: Apache-2.0 */
/**
 * small_float.h - encodings of floating-point numbers in 8 and 16 bits, and arithmetic on them with one rounding.
 *
 * Everything is computed exactly or to odd in a wider type first, so that the final rounding is the only one. Denormals are kept. In
 * host programs as well as in kernels; C++11 and later.
 */
#ifndef KOLO_CUDA_SMALL_FLOAT_H
#define KOLO_CUDA_SMALL_FLOAT_H

#pragma GCC system_header

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace __kolo
{

enum rounding { to_nearest, to_zero, upward, downward };

inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

inline uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** `magnitude` shifted right by `n`, rounded; `up` is whether the rounding away from zero is the one asked for. */
inline uint64_t shift_rounded(uint64_t magnitude, int n, rounding mode, bool up)
{
    uint64_t kept = n > 63 ? 0 : magnitude >> n, rest = n > 63 ? magnitude : magnitude & ((1ull << n) - 1),
             half = n > 63 ? 0 : 1ull << (n - 1);

    if (!n) return magnitude;
    if (mode == to_nearest) return kept + (n <= 63 && (rest > half || (rest == half && (kept & 1))));
    return kept + (up && rest);
}

/**
 * The code, without sign, of a number that is not NaN: E bits of exponent, M of mantissa. Values too large for the format get codes
 * above its largest, in order; infinity the largest of all.
 */
template <int E, int M> inline uint32_t encode(double x, rounding mode)
{
    const int bias = (1 << (E - 1)) - 1, least = 1 - bias;
    uint64_t bits = double_bits(x), mantissa = bits & ((1ull << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff), scale;
    bool up = bits >> 63 ? mode == downward : mode == upward;

    if (exponent == 0x7ff) return 0x7fffffff;
    if (!exponent && !mantissa) return 0;
    if (exponent) mantissa |= 1ull << 52;
    exponent = (exponent ? exponent : 1) - 1023;
    scale = exponent > least ? exponent : least;
    return (uint32_t)(((uint64_t)(scale + bias - 1) << M) +
                      shift_rounded(mantissa, 52 - M + (scale - exponent), mode, up));
}

/** Round to odd: the float next to `x` with last bit 1, unless x is a float. Rounding it again is correct. */
inline float to_odd(double x)
{
    float f = (float)x;
    uint32_t bits = float_bits(f);

    if ((double)f == x || x != x) return f;
    if (std::fabs((double)f) > std::fabs(x)) bits--;
    return bits_float(bits | 1);
}

/** a * b + c to odd; a * b is exact in double for types of 16 bits. */
inline double fused_to_odd(double a, double b, double c)
{
    double p = a * b, s = p + c, bb = s - p, error = (p - (s - bb)) + (c - bb);
    uint64_t bits = double_bits(s);

    if (!(std::fabs(s) <= 1.7976931348623157e308) || error == 0.0 || error != error || (bits & 1)) return s;
    return bits_double((error > 0.0) == (s > 0.0) ? bits + 1 : bits - 1);
}

/** A whole number as a double that rounds to fewer bits as the number itself does. */
template <class T> inline double whole(T x)
{
    bool negative = x < 0;
    uint64_t u = negative ? 0 - (uint64_t)x : (uint64_t)x;
    double d = u >> 53 ? (double)(u >> 11 | ((u & 0x7ff) != 0)) * 2048.0 : (double)u;

    return negative ? -d : d;
}

/* ---- the two formats of 16 bits ---- */

struct half_format {
    static const uint16_t nan = 0x7fff, infinity = 0x7c00, largest = 0x7bff;

    static float decode(uint16_t code)
    {
        float f =
            bits_float((code & 0x7fffu) << 13) * bits_float(0x77800000u); /* 2^112: the difference of the biases */

        if ((code & 0x7c00u) == 0x7c00u) f = bits_float((code & 0x7fffu) << 13 | 0x7f800000u);
        return bits_float(float_bits(f) | (code & 0x8000u) << 16);
    }

    static uint16_t nearest(float x)
    {
        uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000u;

        bits &= 0x7fffffffu;
        if (bits > 0x7f800000u) return nan;
        if (bits >= 0x477ff000u) return (uint16_t)(sign | infinity);
        if (bits < 0x38800000u)
            return (uint16_t)(sign | (float_bits(bits_float(bits) + 0.5f) - 0x3f000000u)); /* the sum rounds */
        return (uint16_t)(sign | (bits + 0xc8000fffu + (bits >> 13 & 1)) >> 13);
    }

    static uint32_t magnitude(double x, rounding mode)
    {
        return encode<5, 10>(x, mode);
    }
};

struct bfloat16_format {
    static const uint16_t nan = 0x7fff, infinity = 0x7f80, largest = 0x7f7f;

    static float decode(uint16_t code)
    {
        return bits_float((uint32_t)code << 16);
    }

    static uint16_t nearest(float x)
    {
        uint32_t bits = float_bits(x);

        if ((bits & 0x7fffffffu) > 0x7f800000u) return nan;
        return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
    }

    static uint32_t magnitude(double x, rounding mode)
    {
        return encode<8, 7>(x, mode);
    }
};

/* ---- the two formats of 8 bits: too large numbers become the largest, NaN has one code ---- */

struct e4m3_format {
    static float decode(uint8_t code)
    {
        float magnitude;

        if ((code & 0x7f) == 0x7f) return bits_float(0x7fffffffu);
        magnitude = code & 0x78 ? bits_float((code & 0x7fu) << 20) * 0x1p120f
                                : (float)(code & 7) * 0x1p-9f; /* biases of 127 and 7 */
        return code & 0x80 ? -magnitude : magnitude;
    }

    static uint8_t nearest(float x)
    {
        uint32_t sign = float_bits(x) >> 24 & 0x80u, code = encode<4, 3>(x, to_nearest);

        return x != x ? 0x7f : (uint8_t)(sign | (code > 0x7e ? 0x7e : code));
    }
};

struct e5m2_format {
    static float decode(uint8_t code)
    {
        return half_format::decode((uint16_t)(code << 8));
    }

    static uint8_t nearest(float x)
    {
        uint32_t sign = float_bits(x) >> 24 & 0x80u, code = encode<5, 2>(x, to_nearest);

        return x != x ? 0x7f : (uint8_t)(sign | (code > 0x7b ? 0x7b : code));
    }
};

/** Rounded as `mode` says; beyond the largest number that is infinity or, where rounding goes the other way, the largest. */
template <class F> inline uint16_t round_to(double x, rounding mode)
{
    uint16_t sign = (uint16_t)(double_bits(x) >> 48 & 0x8000u);
    uint32_t code;
    bool inwards = mode == to_zero || (mode == upward && sign) || (mode == downward && !sign);

    if (x != x) return F::nan;
    if (mode == to_nearest) return F::nearest(to_odd(x));
    code = F::magnitude(x, mode);
    if (code >= F::infinity) code = inwards && std::fabs(x) <= 1.7976931348623157e308 ? F::largest : F::infinity;
    return (uint16_t)(sign | code);
}

/** A whole number from 16 bits or less; NaN is 0, or the highest of 64 bits. Source: PTX ISA, cvt. */
template <class T> inline T saturate_whole(double x)
{
    if (x != x) return sizeof(T) < 8 ? 0 : (T)(1ull << 63);
    if (x >= std::ldexp(1.0, (int)sizeof(T) * 8 - std::is_signed<T>::value))
        return (T)(~(T)0 ^ (std::is_signed<T>::value ? (T)((T)1 << (sizeof(T) * 8 - 1)) : 0));
    if (x < (std::is_signed<T>::value ? -std::ldexp(1.0, (int)sizeof(T) * 8 - 1) : 0.0))
        return std::is_signed<T>::value ? (T)((T)1 << (sizeof(T) * 8 - 1)) : 0;
    return (T)x;
}

} // namespace __kolo

/* Conversions `from` and `to` a type of whole numbers, for the four ways to round. */
#define KOLO_WHOLE_NUMBERS(half, format, bits, type, from, to)                                                         \
    KOLO_WHOLE_NUMBERS_ROUNDED(half, format, bits, type, from##_rn, to##_rn, to_nearest, nearbyint)                    \
    KOLO_WHOLE_NUMBERS_ROUNDED(half, format, bits, type, from##_rz, to##_rz, to_zero, trunc)                           \
    KOLO_WHOLE_NUMBERS_ROUNDED(half, format, bits, type, from##_ru, to##_ru, upward, ceil)                             \
    KOLO_WHOLE_NUMBERS_ROUNDED(half, format, bits, type, from##_rd, to##_rd, downward, floor)
#define KOLO_WHOLE_NUMBERS_ROUNDED(half, format, bits, type, from, to, mode, function)                                 \
    static inline half from(type v)                                                                                    \
    {                                                                                                                  \
        return bits(__kolo::round_to<format>(__kolo::whole(v), __kolo::mode));                                         \
    }                                                                                                                  \
    static inline type to(half v)                                                                                      \
    {                                                                                                                  \
        return __kolo::saturate_whole<type>(std::function((double)(float)v));                                          \
    }

#endif
