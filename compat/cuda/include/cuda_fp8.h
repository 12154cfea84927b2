/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuda_fp8.h - numbers of 8 bits: e4m3 (up to 448, no infinity) and e5m2 (up to 57344), with their pairs and fours; and
 * e8m0, powers of two from 2^-127 to 2^127.
 *
 * Conversions round to nearest even; too large values become the largest number or, on request, infinity or NaN.
 */
#ifndef KOLO_CUDA_FP8_H
#define KOLO_CUDA_FP8_H

#if defined(__cplusplus)

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "device_types.h"
#include "vector_types.h"

#pragma GCC system_header

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace __kolo
{

inline unsigned char to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind)
{
    unsigned sign = (unsigned)(double_bits(x) >> 56 & 0x80u), largest = kind == __NV_E4M3 ? 0x7e : 0x7b,
             beyond = kind == __NV_E4M3 ? 0x7f : 0x7c;
    uint32_t code;

    if (x != x)
        return kind == __NV_E4M3 ? (unsigned char)(sign | 0x7f)
                                 : (unsigned char)(sign | 0x7e | (double_bits(x) >> 50 & 3));
    code = kind == __NV_E4M3 ? encode<4, 3>(x, to_nearest) : encode<5, 2>(x, to_nearest);
    if (code > largest) code = saturate == __NV_SATFINITE ? largest : beyond;
    return (unsigned char)(sign | code);
}

/** For types with at most float's bits; NaN becomes one code, without a sign. */
inline unsigned char to_fp8(float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind)
{
    return x != x ? (unsigned char)0x7f : to_fp8((double)x, saturate, kind);
}

inline float of_fp8(unsigned char code, __nv_fp8_interpretation_t kind)
{
    return kind == __NV_E5M2 ? e5m2_format::decode(code) : e4m3_format::decode(code);
}

} // namespace __kolo

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t kind)
{
    return __kolo::to_fp8(x, saturate, kind);
}

static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind)
{
    return __kolo::to_fp8(x, saturate, kind);
}

static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t kind)
{
    return __kolo::to_fp8(__kolo::half_format::decode(x.x), saturate, kind);
}

static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t kind)
{
    return __kolo::to_fp8(__kolo::bfloat16_format::decode(x.x), saturate, kind);
}

static inline __nv_fp8x2_storage_t __kolo_pair(unsigned char low, unsigned char high)
{
    return (__nv_fp8x2_storage_t)(low | high << 8);
}

static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                            __nv_fp8_interpretation_t kind)
{
    return __kolo_pair(__kolo::to_fp8(x.x, saturate, kind), __kolo::to_fp8(x.y, saturate, kind));
}

static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t kind)
{
    return __kolo_pair(__kolo::to_fp8(x.x, saturate, kind), __kolo::to_fp8(x.y, saturate, kind));
}

static inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturate,
                                                              __nv_fp8_interpretation_t kind)
{
    return __kolo_pair(__kolo::to_fp8(__kolo::half_format::decode(x.x), saturate, kind),
                       __kolo::to_fp8(__kolo::half_format::decode(x.y), saturate, kind));
}

static inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t saturate,
                                                                  __nv_fp8_interpretation_t kind)
{
    return __kolo_pair(__kolo::to_fp8(__kolo::bfloat16_format::decode(x.x), saturate, kind),
                       __kolo::to_fp8(__kolo::bfloat16_format::decode(x.y), saturate, kind));
}

static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind)
{
    __half_raw r;

    r.x = kind == __NV_E5M2 && (x & 0x7f) <= 0x7c ? (unsigned short)(x << 8)
                                                  : __kolo::half_format::nearest(__kolo::of_fp8(x, kind));
    return r;
}

static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind)
{
    __half2_raw r;

    r.x = __nv_cvt_fp8_to_halfraw((unsigned char)x, kind).x;
    r.y = __nv_cvt_fp8_to_halfraw((unsigned char)(x >> 8), kind).x;
    return r;
}

namespace __kolo
{

/** 2^(code - 127); 255 is NaN. */
inline double of_e8m0(unsigned char code)
{
    return code == 0xff ? (double)bits_float(0x7fffffffu) : std::ldexp(1.0, (int)code - 127);
}

/** The sign is lost. Above 2^127: that, or NaN. */
inline unsigned char to_e8m0(double x, __nv_saturation_t saturate, bool upward)
{
    int exponent;
    double part = std::frexp(std::fabs(x), &exponent); /* 0.5 to 1, so that x = 2^(exponent - 1) times 1 to 2 */

    if (x != x) return 0xff;
    if (std::isinf(x)) return saturate == __NV_SATFINITE ? 0xfe : 0xff;
    int code = exponent - 1 + 127 + (upward && part > 0.5);
    if (part == 0 || code < 0) return 0;
    return code <= 0xfe ? (unsigned char)code : saturate == __NV_SATFINITE ? 0xfe : 0xff;
}

} // namespace __kolo

/* `rounding`: cudaRoundZero, or cudaRoundPosInf. */
static inline __nv_fp8_storage_t __nv_cvt_double_to_e8m0(double x, __nv_saturation_t saturate,
                                                         enum cudaRoundMode rounding)
{
    return __kolo::to_e8m0(x, saturate, rounding == cudaRoundPosInf);
}

static inline __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float x, __nv_saturation_t saturate,
                                                        enum cudaRoundMode rounding)
{
    return __kolo::to_e8m0((double)x, saturate, rounding == cudaRoundPosInf);
}

static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                              enum cudaRoundMode rounding)
{
    return __kolo::to_e8m0((double)__kolo::bfloat16_format::decode(x.x), saturate, rounding == cudaRoundPosInf);
}

static inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x)
{
    return __nv_bfloat16((float)__kolo::of_e8m0(x));
}

struct __nv_fp8_e8m0 {
    __nv_fp8_storage_t __x;
    __nv_fp8_e8m0() = default;
    explicit __nv_fp8_e8m0(float v) : __x(__kolo::to_e8m0((double)v, __NV_SATFINITE, true))
    {
    }
    explicit __nv_fp8_e8m0(double v) : __x(__kolo::to_e8m0(v, __NV_SATFINITE, true))
    {
    }
    explicit operator float() const
    {
        return (float)__kolo::of_e8m0(__x);
    }
    explicit operator double() const
    {
        return __kolo::of_e8m0(__x);
    }
};

/* clang-format off */
#define KOLO_CUDA_FP8(name, kind)                                                                                                          \
    struct name {                                                                                                                          \
        __nv_fp8_storage_t __x;                                                                                                            \
        name() = default;                                                                                                                  \
        explicit name(__half v) : __x(__kolo::to_fp8((float)v, __NV_SATFINITE, kind)) {}                                                   \
        explicit name(__nv_bfloat16 v) : __x(__kolo::to_fp8((float)v, __NV_SATFINITE, kind)) {}                                            \
        explicit name(float v) : __x(__kolo::to_fp8(v, __NV_SATFINITE, kind)) {}                                                           \
        explicit name(double v) : __x(__kolo::to_fp8(v, __NV_SATFINITE, kind)) {}                                                          \
        template <class I, class = typename std::enable_if<std::is_integral<I>::value>::type> explicit name(I v)                           \
            : __x(__kolo::to_fp8(__kolo::whole(v), __NV_SATFINITE, kind)) {}                                                               \
        explicit operator float() const { return __kolo::of_fp8(__x, kind); }                                                              \
        explicit operator double() const { return __kolo::of_fp8(__x, kind); }                                                             \
        explicit operator __half() const { return __half(__nv_cvt_fp8_to_halfraw(__x, kind)); }                                            \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16(__kolo::of_fp8(__x, kind)); }                                       \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                                                                       \
        template <class I, class = typename std::enable_if<std::is_integral<I>::value && !std::is_same<I, bool>::value>::type>             \
        explicit operator I() const { return __kolo::saturate_whole<I>(std::trunc((double)__kolo::of_fp8(__x, kind))); }                   \
    };
#define KOLO_CUDA_FP8X2(name, kind)                                                                                                        \
    struct name {                                                                                                                          \
        __nv_fp8x2_storage_t __x;                                                                                                          \
        name() = default;                                                                                                                  \
        explicit name(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                                                \
        explicit name(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                                              \
        explicit name(__half2 v) : __x(__nv_cvt_halfraw2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                                             \
        explicit name(__nv_bfloat162 v) : __x(__nv_cvt_bfloat16raw2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                                  \
        explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, kind)); }                                       \
        explicit operator float2() const                                                                                                   \
        {                                                                                                                                  \
            float2 f;                                                                                                                      \
            f.x = __kolo::of_fp8((unsigned char)__x, kind);                                                                                \
            f.y = __kolo::of_fp8((unsigned char)(__x >> 8), kind);                                                                         \
            return f;                                                                                                                      \
        }                                                                                                                                  \
    };
#define KOLO_CUDA_FP8X4(name, kind)                                                                                                  \
    struct name {                                                                                                                          \
        __nv_fp8x4_storage_t __x;                                                                                                          \
        name() = default;                                                                                                                  \
        explicit name(float4 v)                                                                                                            \
            : __x(__kolo::to_fp8(v.x, __NV_SATFINITE, kind) | (unsigned)__kolo::to_fp8(v.y, __NV_SATFINITE, kind) << 8 |                   \
                  (unsigned)__kolo::to_fp8(v.z, __NV_SATFINITE, kind) << 16 | (unsigned)__kolo::to_fp8(v.w, __NV_SATFINITE, kind) << 24) {} \
        explicit operator float4() const                                                                                                   \
        {                                                                                                                                  \
            float4 f;                                                                                                                      \
            f.x = __kolo::of_fp8((unsigned char)__x, kind);                                                                                \
            f.y = __kolo::of_fp8((unsigned char)(__x >> 8), kind);                                                                         \
            f.z = __kolo::of_fp8((unsigned char)(__x >> 16), kind);                                                                        \
            f.w = __kolo::of_fp8((unsigned char)(__x >> 24), kind);                                                                        \
            return f;                                                                                                                      \
        }                                                                                                                                  \
    };
KOLO_CUDA_FP8(__nv_fp8_e4m3, __NV_E4M3)
KOLO_CUDA_FP8(__nv_fp8_e5m2, __NV_E5M2)
KOLO_CUDA_FP8X2(__nv_fp8x2_e4m3, __NV_E4M3)
KOLO_CUDA_FP8X2(__nv_fp8x2_e5m2, __NV_E5M2)
KOLO_CUDA_FP8X4(__nv_fp8x4_e4m3, __NV_E4M3)
KOLO_CUDA_FP8X4(__nv_fp8x4_e5m2, __NV_E5M2)
#undef KOLO_CUDA_FP8
#undef KOLO_CUDA_FP8X2
#undef KOLO_CUDA_FP8X4
/* clang-format on */

#endif

#endif
