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
static inline __nv_bfloat16 __int2bfloat16_rn(int v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline int __bfloat162int_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<int>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __int2bfloat16_rz(int v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline int __bfloat162int_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<int>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __int2bfloat16_ru(int v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline int __bfloat162int_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<int>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __int2bfloat16_rd(int v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline int __bfloat162int_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<int>(std::floor((double)(float)v)); }
static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned __bfloat162uint_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __uint2bfloat16_rz(unsigned v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned __bfloat162uint_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __uint2bfloat16_ru(unsigned v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned __bfloat162uint_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __uint2bfloat16_rd(unsigned v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned __bfloat162uint_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned>(std::floor((double)(float)v)); }
static inline __nv_bfloat16 __short2bfloat16_rn(short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline short __bfloat162short_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<short>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __short2bfloat16_rz(short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline short __bfloat162short_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<short>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __short2bfloat16_ru(short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline short __bfloat162short_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<short>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __short2bfloat16_rd(short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline short __bfloat162short_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<short>(std::floor((double)(float)v)); }
static inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned short __bfloat162ushort_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned short>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __ushort2bfloat16_rz(unsigned short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned short __bfloat162ushort_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned short>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __ushort2bfloat16_ru(unsigned short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned short __bfloat162ushort_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned short>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __ushort2bfloat16_rd(unsigned short v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned short __bfloat162ushort_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned short>(std::floor((double)(float)v)); }
static inline __nv_bfloat16 __ll2bfloat16_rn(long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline long long __bfloat162ll_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<long long>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __ll2bfloat16_rz(long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline long long __bfloat162ll_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<long long>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __ll2bfloat16_ru(long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline long long __bfloat162ll_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<long long>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __ll2bfloat16_rd(long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline long long __bfloat162ll_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<long long>(std::floor((double)(float)v)); }
static inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned long long __bfloat162ull_rn(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned long long>(std::nearbyint((double)(float)v)); }
static inline __nv_bfloat16 __ull2bfloat16_rz(unsigned long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned long long __bfloat162ull_rz(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned long long>(std::trunc((double)(float)v)); }
static inline __nv_bfloat16 __ull2bfloat16_ru(unsigned long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned long long __bfloat162ull_ru(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned long long>(std::ceil((double)(float)v)); }
static inline __nv_bfloat16 __ull2bfloat16_rd(unsigned long long v) { return __ushort_as_bfloat16(__kolo::round_to<__kolo::bfloat16_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned long long __bfloat162ull_rd(__nv_bfloat16 v) { return __kolo::saturate_whole<unsigned long long>(std::floor((double)(float)v)); }

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

/* ---- arithmetic ---- */

static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((double)(float)a + (double)(float)b); }
static inline __nv_bfloat16 __hadd_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((double)(float)a - (double)(float)b); }
static inline __nv_bfloat16 __hsub_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hsub(a, b); }
static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((double)(float)a * (double)(float)b); }
static inline __nv_bfloat16 __hmul_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmul(a, b); }
static inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((double)(float)a / (double)(float)b); }
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __nv_bfloat16(__kolo::fused_to_odd((float)a, (float)b, (float)c)); }
static inline __nv_bfloat16 __hneg(__nv_bfloat16 a) { return __ushort_as_bfloat16((unsigned short)(a.__x ^ 0x8000u)); }
static inline __nv_bfloat16 __habs(__nv_bfloat16 a) { return __ushort_as_bfloat16((unsigned short)(a.__x & 0x7fffu)); }
static inline bool __hisnan(__nv_bfloat16 a) { return (a.__x & 0x7fffu) > __kolo::bfloat16_format::infinity; }
static inline int __hisinf(__nv_bfloat16 a) { return (a.__x & 0x7fffu) != __kolo::bfloat16_format::infinity ? 0 : a.__x >> 15 ? -1 : 1; }
static inline __nv_bfloat16 __kolo_saturate(__nv_bfloat16 a) { float f = a; return f > 0.0f ? (f < 1.0f ? a : __nv_bfloat16(1.0f)) : __nv_bfloat16(0.0f); }
static inline __nv_bfloat16 __kolo_relu(__nv_bfloat16 a) { return __hisnan(a) || (float)a > 0.0f ? a : __nv_bfloat16(0.0f); }
static inline __nv_bfloat16 __hadd_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kolo_saturate(__hadd(a, b)); }
static inline __nv_bfloat16 __hsub_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kolo_saturate(__hsub(a, b)); }
static inline __nv_bfloat16 __hmul_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kolo_saturate(__hmul(a, b)); }
static inline __nv_bfloat16 __hfma_sat(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __kolo_saturate(__hfma(a, b, c)); }
static inline __nv_bfloat16 __hfma_relu(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __kolo_relu(__hfma(a, b, c)); }

/* ---- order ---- */

static inline bool __heq(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a == (float)b; }
static inline bool __hequ(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a == (float)b; }
static inline bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) { return !__hisnan(a) && !__hisnan(b) && (float)a != (float)b; }
static inline bool __hneu(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a != (float)b; }
static inline bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a < (float)b; }
static inline bool __hltu(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a < (float)b; }
static inline bool __hle(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a <= (float)b; }
static inline bool __hleu(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a <= (float)b; }
static inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a > (float)b; }
static inline bool __hgtu(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a > (float)b; }
static inline bool __hge(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a >= (float)b; }
static inline bool __hgeu(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) || (float)a >= (float)b; }
/* What is no number loses against one; -0 is less than 0. */
static inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) { if (__hisnan(a)) return __hisnan(b) ? __ushort_as_bfloat16(__kolo::bfloat16_format::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? a : b; return (float)a < (float)b ? a : b; }
static inline __nv_bfloat16 __hmin_nan(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) ? __ushort_as_bfloat16(__kolo::bfloat16_format::nan) : __hmin(a, b); }
static inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) { if (__hisnan(a)) return __hisnan(b) ? __ushort_as_bfloat16(__kolo::bfloat16_format::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? b : a; return (float)a > (float)b ? a : b; }
static inline __nv_bfloat16 __hmax_nan(__nv_bfloat16 a, __nv_bfloat16 b) { return __hisnan(a) || __hisnan(b) ? __ushort_as_bfloat16(__kolo::bfloat16_format::nan) : __hmax(a, b); }

/* ---- functions ---- */

static inline __nv_bfloat16 hsqrt(__nv_bfloat16 a) { return __nv_bfloat16(std::sqrt((double)(float)a)); }
static inline __nv_bfloat16 hexp(__nv_bfloat16 a) { return __nv_bfloat16(std::exp((double)(float)a)); }
static inline __nv_bfloat16 hexp2(__nv_bfloat16 a) { return __nv_bfloat16(std::exp2((double)(float)a)); }
static inline __nv_bfloat16 hlog(__nv_bfloat16 a) { return __nv_bfloat16(std::log((double)(float)a)); }
static inline __nv_bfloat16 hlog2(__nv_bfloat16 a) { return __nv_bfloat16(std::log2((double)(float)a)); }
static inline __nv_bfloat16 hlog10(__nv_bfloat16 a) { return __nv_bfloat16(std::log10((double)(float)a)); }
static inline __nv_bfloat16 hsin(__nv_bfloat16 a) { return __nv_bfloat16(std::sin((double)(float)a)); }
static inline __nv_bfloat16 hcos(__nv_bfloat16 a) { return __nv_bfloat16(std::cos((double)(float)a)); }
static inline __nv_bfloat16 htanh(__nv_bfloat16 a) { return __nv_bfloat16(std::tanh((double)(float)a)); }
static inline __nv_bfloat16 hceil(__nv_bfloat16 a) { return __nv_bfloat16(std::ceil((double)(float)a)); }
static inline __nv_bfloat16 hfloor(__nv_bfloat16 a) { return __nv_bfloat16(std::floor((double)(float)a)); }
static inline __nv_bfloat16 htrunc(__nv_bfloat16 a) { return __nv_bfloat16(std::trunc((double)(float)a)); }
static inline __nv_bfloat16 hrint(__nv_bfloat16 a) { return __nv_bfloat16(std::nearbyint((double)(float)a)); }
static inline __nv_bfloat16 hrcp(__nv_bfloat16 a) { return __nv_bfloat16(1.0 / (double)(float)a); }
static inline __nv_bfloat16 hrsqrt(__nv_bfloat16 a) { return __nv_bfloat16(1.0 / std::sqrt((double)(float)a)); }
static inline __nv_bfloat16 hexp10(__nv_bfloat16 a) { return __nv_bfloat16(std::pow(10.0, (double)(float)a)); }

/* ---- pairs, element by element ---- */

static inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hadd(a.x, b.x), __hadd(a.y, b.y)); }
static inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hsub(a.x, b.x), __hsub(a.y, b.y)); }
static inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmul(a.x, b.x), __hmul(a.y, b.y)); }
static inline __nv_bfloat162 __hmin2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
static inline __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
static inline __nv_bfloat162 __hmin2_nan(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)); }
static inline __nv_bfloat162 __hmax2_nan(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)); }
static inline __nv_bfloat162 __hadd2_sat(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)); }
static inline __nv_bfloat162 __hsub2_sat(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)); }
static inline __nv_bfloat162 __hmul2_sat(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)); }
static inline __nv_bfloat162 __hadd2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hadd_rn(a.x, b.x), __hadd_rn(a.y, b.y)); }
static inline __nv_bfloat162 __hsub2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hsub_rn(a.x, b.x), __hsub_rn(a.y, b.y)); }
static inline __nv_bfloat162 __hmul2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hmul_rn(a.x, b.x), __hmul_rn(a.y, b.y)); }
static inline __nv_bfloat162 __h2div(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
static inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) { return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
static inline __nv_bfloat162 __hfma2_sat(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) { return __nv_bfloat162(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); }
static inline __nv_bfloat162 __hfma2_relu(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) { return __nv_bfloat162(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }
static inline __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return __nv_bfloat162(__hneg(a.x), __hneg(a.y)); }
static inline __nv_bfloat162 __habs2(__nv_bfloat162 a) { return __nv_bfloat162(__habs(a.x), __habs(a.y)); }
static inline __nv_bfloat162 __hisnan2(__nv_bfloat162 a) { return __nv_bfloat162(__nv_bfloat16(__hisnan(a.x) ? 1.0f : 0.0f), __nv_bfloat16(__hisnan(a.y) ? 1.0f : 0.0f)); }
static inline __nv_bfloat162 __heq2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__heq(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__heq(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbeq2(__nv_bfloat162 a, __nv_bfloat162 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }
static inline __nv_bfloat162 __hequ2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hequ(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hequ(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbequ2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); }
static inline __nv_bfloat162 __hne2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hne(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hne(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbne2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
static inline __nv_bfloat162 __hneu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hneu(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hneu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbneu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
static inline __nv_bfloat162 __hlt2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hlt(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hlt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hblt2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }
static inline __nv_bfloat162 __hltu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hltu(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hltu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbltu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); }
static inline __nv_bfloat162 __hle2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hle(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hle(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hble2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }
static inline __nv_bfloat162 __hleu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hleu(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hleu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbleu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); }
static inline __nv_bfloat162 __hgt2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hgt(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hgt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgt2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }
static inline __nv_bfloat162 __hgtu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hgtu(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hgtu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgtu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); }
static inline __nv_bfloat162 __hge2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hge(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hge(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbge2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }
static inline __nv_bfloat162 __hgeu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(__nv_bfloat16(__hgeu(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__hgeu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgeu2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); }
static inline __nv_bfloat162 h2sqrt(__nv_bfloat162 a) { return __nv_bfloat162(hsqrt(a.x), hsqrt(a.y)); }
static inline __nv_bfloat162 h2exp(__nv_bfloat162 a) { return __nv_bfloat162(hexp(a.x), hexp(a.y)); }
static inline __nv_bfloat162 h2exp2(__nv_bfloat162 a) { return __nv_bfloat162(hexp2(a.x), hexp2(a.y)); }
static inline __nv_bfloat162 h2log(__nv_bfloat162 a) { return __nv_bfloat162(hlog(a.x), hlog(a.y)); }
static inline __nv_bfloat162 h2log2(__nv_bfloat162 a) { return __nv_bfloat162(hlog2(a.x), hlog2(a.y)); }
static inline __nv_bfloat162 h2log10(__nv_bfloat162 a) { return __nv_bfloat162(hlog10(a.x), hlog10(a.y)); }
static inline __nv_bfloat162 h2sin(__nv_bfloat162 a) { return __nv_bfloat162(hsin(a.x), hsin(a.y)); }
static inline __nv_bfloat162 h2cos(__nv_bfloat162 a) { return __nv_bfloat162(hcos(a.x), hcos(a.y)); }
static inline __nv_bfloat162 h2tanh(__nv_bfloat162 a) { return __nv_bfloat162(htanh(a.x), htanh(a.y)); }
static inline __nv_bfloat162 h2ceil(__nv_bfloat162 a) { return __nv_bfloat162(hceil(a.x), hceil(a.y)); }
static inline __nv_bfloat162 h2floor(__nv_bfloat162 a) { return __nv_bfloat162(hfloor(a.x), hfloor(a.y)); }
static inline __nv_bfloat162 h2trunc(__nv_bfloat162 a) { return __nv_bfloat162(htrunc(a.x), htrunc(a.y)); }
static inline __nv_bfloat162 h2rint(__nv_bfloat162 a) { return __nv_bfloat162(hrint(a.x), hrint(a.y)); }
static inline __nv_bfloat162 h2rcp(__nv_bfloat162 a) { return __nv_bfloat162(hrcp(a.x), hrcp(a.y)); }
static inline __nv_bfloat162 h2rsqrt(__nv_bfloat162 a) { return __nv_bfloat162(hrsqrt(a.x), hrsqrt(a.y)); }
static inline __nv_bfloat162 h2exp10(__nv_bfloat162 a) { return __nv_bfloat162(hexp10(a.x), hexp10(a.y)); }

/* ---- operators ---- */

static inline __nv_bfloat16 operator+(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hadd(a, b); }
static inline __nv_bfloat16 &operator+=(__nv_bfloat16 &a, const __nv_bfloat16 &b) { return a = __hadd(a, b); }
static inline __nv_bfloat162 operator+(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hadd2(a, b); }
static inline __nv_bfloat162 &operator+=(__nv_bfloat162 &a, const __nv_bfloat162 &b) { return a = __hadd2(a, b); }
static inline __nv_bfloat16 operator-(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hsub(a, b); }
static inline __nv_bfloat16 &operator-=(__nv_bfloat16 &a, const __nv_bfloat16 &b) { return a = __hsub(a, b); }
static inline __nv_bfloat162 operator-(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hsub2(a, b); }
static inline __nv_bfloat162 &operator-=(__nv_bfloat162 &a, const __nv_bfloat162 &b) { return a = __hsub2(a, b); }
static inline __nv_bfloat16 operator*(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hmul(a, b); }
static inline __nv_bfloat16 &operator*=(__nv_bfloat16 &a, const __nv_bfloat16 &b) { return a = __hmul(a, b); }
static inline __nv_bfloat162 operator*(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hmul2(a, b); }
static inline __nv_bfloat162 &operator*=(__nv_bfloat162 &a, const __nv_bfloat162 &b) { return a = __hmul2(a, b); }
static inline __nv_bfloat16 operator/(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hdiv(a, b); }
static inline __nv_bfloat16 &operator/=(__nv_bfloat16 &a, const __nv_bfloat16 &b) { return a = __hdiv(a, b); }
static inline __nv_bfloat162 operator/(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __h2div(a, b); }
static inline __nv_bfloat162 &operator/=(__nv_bfloat162 &a, const __nv_bfloat162 &b) { return a = __h2div(a, b); }
static inline __nv_bfloat16 operator+(const __nv_bfloat16 &a) { return a; }
static inline __nv_bfloat16 operator-(const __nv_bfloat16 &a) { return __hneg(a); }
static inline __nv_bfloat16 &operator++(__nv_bfloat16 &a) { return a = a + __nv_bfloat16(1.0f); }
static inline __nv_bfloat16 &operator--(__nv_bfloat16 &a) { return a = a - __nv_bfloat16(1.0f); }
static inline __nv_bfloat16 operator++(__nv_bfloat16 &a, int) { __nv_bfloat16 old = a; ++a; return old; }
static inline __nv_bfloat16 operator--(__nv_bfloat16 &a, int) { __nv_bfloat16 old = a; --a; return old; }
static inline __nv_bfloat162 operator+(const __nv_bfloat162 &a) { return a; }
static inline __nv_bfloat162 operator-(const __nv_bfloat162 &a) { return __hneg2(a); }
static inline __nv_bfloat162 &operator++(__nv_bfloat162 &a) { return a = a + __nv_bfloat162(__nv_bfloat16(1.0f), __nv_bfloat16(1.0f)); }
static inline __nv_bfloat162 &operator--(__nv_bfloat162 &a) { return a = a - __nv_bfloat162(__nv_bfloat16(1.0f), __nv_bfloat16(1.0f)); }
static inline __nv_bfloat162 operator++(__nv_bfloat162 &a, int) { __nv_bfloat162 old = a; ++a; return old; }
static inline __nv_bfloat162 operator--(__nv_bfloat162 &a, int) { __nv_bfloat162 old = a; --a; return old; }
static inline bool operator==(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __heq(a, b); }
static inline bool operator==(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hbeq2(a, b); }
static inline bool operator!=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hneu(a, b); }
static inline bool operator!=(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hbneu2(a, b); }
static inline bool operator<(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hlt(a, b); }
static inline bool operator<(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hblt2(a, b); }
static inline bool operator<=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hle(a, b); }
static inline bool operator<=(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hble2(a, b); }
static inline bool operator>(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hgt(a, b); }
static inline bool operator>(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hbgt2(a, b); }
static inline bool operator>=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hge(a, b); }
static inline bool operator>=(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hbge2(a, b); }

/* ---- in kernels ---- */

#if defined(__KOLO_NVCC__)
static inline __nv_bfloat16 atomicAdd(__nv_bfloat16 *p, __nv_bfloat16 v) { return __kolo::update(p, [v](__nv_bfloat16 old) { return __hadd(old, v); }); }
static inline __nv_bfloat162 atomicAdd(__nv_bfloat162 *p, __nv_bfloat162 v) { return __kolo::update(p, [v](__nv_bfloat162 old) { return __hadd2(old, v); }); }
static inline __nv_bfloat16 atomicAdd_block(__nv_bfloat16 *p, __nv_bfloat16 v) { return __kolo::update(p, [v](__nv_bfloat16 old) { return __hadd(old, v); }); }
static inline __nv_bfloat162 atomicAdd_block(__nv_bfloat162 *p, __nv_bfloat162 v) { return __kolo::update(p, [v](__nv_bfloat162 old) { return __hadd2(old, v); }); }
static inline __nv_bfloat16 atomicAdd_system(__nv_bfloat16 *p, __nv_bfloat16 v) { return __kolo::update(p, [v](__nv_bfloat16 old) { return __hadd(old, v); }); }
static inline __nv_bfloat162 atomicAdd_system(__nv_bfloat162 *p, __nv_bfloat162 v) { return __kolo::update(p, [v](__nv_bfloat162 old) { return __hadd2(old, v); }); }
#endif

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
