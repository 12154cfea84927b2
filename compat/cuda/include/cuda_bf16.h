/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_bf16.h - bfloat16 and its pair: 8 bits of exponent, 7 of mantissa; each operation rounds once, to nearest even. For hosts and kernels. */
#ifndef KOLO_CUDA_BF16_H
#define KOLO_CUDA_BF16_H

#if defined(__cplusplus)

#include "kolo_cuda/small_float.h"
#include "vector_types.h"

#pragma GCC system_header

/* clang-format off */

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct __nv_bfloat162_raw {
    unsigned short x, y;
};

struct __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    __nv_bfloat16(const __nv_bfloat16_raw &r) : __x(r.x) {}
    __nv_bfloat16(float v) : __x(__kolo::bfloat16_format::nearest(v)) {}
    __nv_bfloat16(double v) : __x(__kolo::round_to<__kolo::bfloat16_format>(v, __kolo::to_nearest)) {}
    template <class I, class = typename std::enable_if<std::is_integral<I>::value>::type> __nv_bfloat16(I v)
        : __x(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)) {}
    template <class I, class = typename std::enable_if<std::is_arithmetic<I>::value>::type> __nv_bfloat16 &operator=(I v) { return *this = __nv_bfloat16(v); }
    __nv_bfloat16 &operator=(const __nv_bfloat16_raw &r) { __x = r.x; return *this; }
    operator float() const { return __kolo::bfloat16_format::decode(__x); }
    operator __nv_bfloat16_raw() const { __nv_bfloat16_raw r; r.x = __x; return r; }
};

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
    __nv_bfloat162(const __nv_bfloat162_raw &r) { x.__x = r.x; y.__x = r.y; }
    operator __nv_bfloat162_raw() const { __nv_bfloat162_raw r; r.x = x.__x; r.y = y.__x; return r; }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

/* ---- bits ---- */

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { __nv_bfloat16 h; h.__x = v; return h; }
static inline __nv_bfloat16 __short_as_bfloat16(short v) { return __ushort_as_bfloat16((unsigned short)v); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.__x; }
static inline short __bfloat16_as_short(__nv_bfloat16 v) { return (short)v.__x; }

/* ---- conversions ---- */

static inline __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
static inline __nv_bfloat16 __double2bfloat16(double v) { return __nv_bfloat16(v); }
static inline float __bfloat162float(__nv_bfloat16 v) { return (float)v; }
static inline __nv_bfloat16 __float2bfloat16_rn(float v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>((double)v, __kolo::to_nearest)); }
static inline __nv_bfloat16 __float2bfloat16_rz(float v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>((double)v, __kolo::to_zero)); }
static inline __nv_bfloat16 __float2bfloat16_ru(float v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>((double)v, __kolo::upward)); }
static inline __nv_bfloat16 __float2bfloat16_rd(float v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>((double)v, __kolo::downward)); }
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, int, __int2bfloat16, __bfloat162int)
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, unsigned, __uint2bfloat16, __bfloat162uint)
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, short, __short2bfloat16, __bfloat162short)
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, unsigned short, __ushort2bfloat16, __bfloat162ushort)
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, long long, __ll2bfloat16, __bfloat162ll)
KOLO_WHOLE_NUMBERS(__nv_bfloat16, __kolo::bfloat16_format, __ushort_as_bfloat16, unsigned long long, __ull2bfloat16, __bfloat162ull)

/* ---- pairs ---- */

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
static inline __nv_bfloat162 __float2bfloat162_rn(float a) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a)); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b)); }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __nv_bfloat162(__nv_bfloat16(v.x), __nv_bfloat16(v.y)); }
static inline float2 __bfloat1622float2(__nv_bfloat162 v) { float2 f; f.x = v.x; f.y = v.y; return f; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
static inline float __low2float(__nv_bfloat162 v) { return v.x; }
static inline float __high2float(__nv_bfloat162 v) { return v.y; }
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.x, v.x); }
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.y); }
static inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
static inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
static inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.x); }

#define KOLO_HALF        __nv_bfloat16
#define KOLO_HALF2       __nv_bfloat162
#define KOLO_HALF_FORMAT __kolo::bfloat16_format
#define KOLO_HALF_BITS   __ushort_as_bfloat16
#define KOLO_HALF_EXACT  double
#include "kolo_cuda/half_operations.h"

#define CUDART_INF_BF16        __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16        __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001U)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7F7FU)
#define CUDART_NEG_ZERO_BF16   __ushort_as_bfloat16((unsigned short)0x8000U)
#define CUDART_ZERO_BF16       __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_ONE_BF16        __ushort_as_bfloat16((unsigned short)0x3F80U)

/* clang-format on */

#endif

#endif
