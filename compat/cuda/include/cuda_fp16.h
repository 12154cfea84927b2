/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_fp16.h - half and half2: 5 bits of exponent, 10 of mantissa; each operation rounds once, to nearest even. For hosts and kernels. */
#ifndef KOLO_CUDA_FP16_H
#define KOLO_CUDA_FP16_H

#if defined(__cplusplus)

#include "kolo_cuda/small_float.h"
#include "vector_types.h"

#pragma GCC system_header

/* clang-format off */

struct __half_raw {
    unsigned short x;
};

struct __half2_raw {
    unsigned short x, y;
};

struct __half {
    unsigned short __x;

    __half() = default;
    __half(const __half_raw &r) : __x(r.x) {}
    __half(float v) : __x(__kolo::half_format::nearest(v)) {}
    __half(double v) : __x(__kolo::round_to<__kolo::half_format>(v, __kolo::to_nearest)) {}
    template <class I, class = typename std::enable_if<std::is_integral<I>::value>::type> __half(I v)
        : __x(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)) {}
    template <class I, class = typename std::enable_if<std::is_arithmetic<I>::value>::type> __half &operator=(I v) { return *this = __half(v); }
    __half &operator=(const __half_raw &r) { __x = r.x; return *this; }
    operator float() const { return __kolo::half_format::decode(__x); }
    operator __half_raw() const { __half_raw r; r.x = __x; return r; }
};

struct __attribute__((aligned(4))) __half2 {
    __half x, y;

    __half2() = default;
    __half2(const __half &a, const __half &b) : x(a), y(b) {}
    __half2(const __half2_raw &r) { x.__x = r.x; y.__x = r.y; }
    operator __half2_raw() const { __half2_raw r; r.x = x.__x; r.y = y.__x; return r; }
};

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

/* ---- bits ---- */

static inline __half __ushort_as_half(unsigned short v) { __half h; h.__x = v; return h; }
static inline __half __short_as_half(short v) { return __ushort_as_half((unsigned short)v); }
static inline unsigned short __half_as_ushort(__half v) { return v.__x; }
static inline short __half_as_short(__half v) { return (short)v.__x; }

/* ---- conversions ---- */

static inline __half __float2half(float v) { return __half(v); }
static inline __half __double2half(double v) { return __half(v); }
static inline float __half2float(__half v) { return (float)v; }
static inline __half __float2half_rn(float v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>((double)v, __kolo::to_nearest)); }
static inline __half __float2half_rz(float v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>((double)v, __kolo::to_zero)); }
static inline __half __float2half_ru(float v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>((double)v, __kolo::upward)); }
static inline __half __float2half_rd(float v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>((double)v, __kolo::downward)); }
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, int, __int2half, __half2int)
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, unsigned, __uint2half, __half2uint)
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, short, __short2half, __half2short)
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, unsigned short, __ushort2half, __half2ushort)
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, long long, __ll2half, __half2ll)
KOLO_WHOLE_NUMBERS(__half, __kolo::half_format, __ushort_as_half, unsigned long long, __ull2half, __half2ull)

/* ---- pairs ---- */

static inline __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
static inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
static inline __half2 __half2half2(__half a) { return __half2(a, a); }
static inline __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
static inline __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
static inline __half2 __float22half2_rn(float2 v) { return __half2(__half(v.x), __half(v.y)); }
static inline float2 __half22float2(__half2 v) { float2 f; f.x = v.x; f.y = v.y; return f; }
static inline __half __low2half(__half2 v) { return v.x; }
static inline __half __high2half(__half2 v) { return v.y; }
static inline float __low2float(__half2 v) { return v.x; }
static inline float __high2float(__half2 v) { return v.y; }
static inline __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
static inline __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
static inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
static inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
static inline __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }

#define KOLO_HALF        __half
#define KOLO_HALF2       __half2
#define KOLO_HALF_FORMAT __kolo::half_format
#define KOLO_HALF_BITS   __ushort_as_half
#define KOLO_HALF_EXACT  float
#include "kolo_cuda/half_operations.h"

#define CUDART_INF_FP16        __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16        __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_NEG_ZERO_FP16   __ushort_as_half((unsigned short)0x8000U)
#define CUDART_ZERO_FP16       __ushort_as_half((unsigned short)0x0000U)
#define CUDART_ONE_FP16        __ushort_as_half((unsigned short)0x3C00U)

/* clang-format on */

#endif

#endif
