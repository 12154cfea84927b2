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
static inline __half __int2half_rn(int v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline int __half2int_rn(__half v) { return __kolo::saturate_whole<int>(std::nearbyint((double)(float)v)); }
static inline __half __int2half_rz(int v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline int __half2int_rz(__half v) { return __kolo::saturate_whole<int>(std::trunc((double)(float)v)); }
static inline __half __int2half_ru(int v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline int __half2int_ru(__half v) { return __kolo::saturate_whole<int>(std::ceil((double)(float)v)); }
static inline __half __int2half_rd(int v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline int __half2int_rd(__half v) { return __kolo::saturate_whole<int>(std::floor((double)(float)v)); }
static inline __half __uint2half_rn(unsigned v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned __half2uint_rn(__half v) { return __kolo::saturate_whole<unsigned>(std::nearbyint((double)(float)v)); }
static inline __half __uint2half_rz(unsigned v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned __half2uint_rz(__half v) { return __kolo::saturate_whole<unsigned>(std::trunc((double)(float)v)); }
static inline __half __uint2half_ru(unsigned v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned __half2uint_ru(__half v) { return __kolo::saturate_whole<unsigned>(std::ceil((double)(float)v)); }
static inline __half __uint2half_rd(unsigned v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned __half2uint_rd(__half v) { return __kolo::saturate_whole<unsigned>(std::floor((double)(float)v)); }
static inline __half __short2half_rn(short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline short __half2short_rn(__half v) { return __kolo::saturate_whole<short>(std::nearbyint((double)(float)v)); }
static inline __half __short2half_rz(short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline short __half2short_rz(__half v) { return __kolo::saturate_whole<short>(std::trunc((double)(float)v)); }
static inline __half __short2half_ru(short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline short __half2short_ru(__half v) { return __kolo::saturate_whole<short>(std::ceil((double)(float)v)); }
static inline __half __short2half_rd(short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline short __half2short_rd(__half v) { return __kolo::saturate_whole<short>(std::floor((double)(float)v)); }
static inline __half __ushort2half_rn(unsigned short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned short __half2ushort_rn(__half v) { return __kolo::saturate_whole<unsigned short>(std::nearbyint((double)(float)v)); }
static inline __half __ushort2half_rz(unsigned short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned short __half2ushort_rz(__half v) { return __kolo::saturate_whole<unsigned short>(std::trunc((double)(float)v)); }
static inline __half __ushort2half_ru(unsigned short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned short __half2ushort_ru(__half v) { return __kolo::saturate_whole<unsigned short>(std::ceil((double)(float)v)); }
static inline __half __ushort2half_rd(unsigned short v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned short __half2ushort_rd(__half v) { return __kolo::saturate_whole<unsigned short>(std::floor((double)(float)v)); }
static inline __half __ll2half_rn(long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline long long __half2ll_rn(__half v) { return __kolo::saturate_whole<long long>(std::nearbyint((double)(float)v)); }
static inline __half __ll2half_rz(long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline long long __half2ll_rz(__half v) { return __kolo::saturate_whole<long long>(std::trunc((double)(float)v)); }
static inline __half __ll2half_ru(long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline long long __half2ll_ru(__half v) { return __kolo::saturate_whole<long long>(std::ceil((double)(float)v)); }
static inline __half __ll2half_rd(long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline long long __half2ll_rd(__half v) { return __kolo::saturate_whole<long long>(std::floor((double)(float)v)); }
static inline __half __ull2half_rn(unsigned long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_nearest)); }
static inline unsigned long long __half2ull_rn(__half v) { return __kolo::saturate_whole<unsigned long long>(std::nearbyint((double)(float)v)); }
static inline __half __ull2half_rz(unsigned long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::to_zero)); }
static inline unsigned long long __half2ull_rz(__half v) { return __kolo::saturate_whole<unsigned long long>(std::trunc((double)(float)v)); }
static inline __half __ull2half_ru(unsigned long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::upward)); }
static inline unsigned long long __half2ull_ru(__half v) { return __kolo::saturate_whole<unsigned long long>(std::ceil((double)(float)v)); }
static inline __half __ull2half_rd(unsigned long long v) { return __ushort_as_half(__kolo::round_to<__kolo::half_format>(__kolo::whole(v), __kolo::downward)); }
static inline unsigned long long __half2ull_rd(__half v) { return __kolo::saturate_whole<unsigned long long>(std::floor((double)(float)v)); }

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

/* ---- arithmetic ---- */

static inline __half __hadd(__half a, __half b) { return __half((float)(float)a + (float)(float)b); }
static inline __half __hadd_rn(__half a, __half b) { return __hadd(a, b); }
static inline __half __hsub(__half a, __half b) { return __half((float)(float)a - (float)(float)b); }
static inline __half __hsub_rn(__half a, __half b) { return __hsub(a, b); }
static inline __half __hmul(__half a, __half b) { return __half((float)(float)a * (float)(float)b); }
static inline __half __hmul_rn(__half a, __half b) { return __hmul(a, b); }
static inline __half __hdiv(__half a, __half b) { return __half((float)(float)a / (float)(float)b); }
static inline __half __hfma(__half a, __half b, __half c) { return __half(__kolo::fused_to_odd((float)a, (float)b, (float)c)); }
static inline __half __hneg(__half a) { return __ushort_as_half((unsigned short)(a.__x ^ 0x8000u)); }
static inline __half __habs(__half a) { return __ushort_as_half((unsigned short)(a.__x & 0x7fffu)); }
static inline bool __hisnan(__half a) { return (a.__x & 0x7fffu) > __kolo::half_format::infinity; }
static inline int __hisinf(__half a) { return (a.__x & 0x7fffu) != __kolo::half_format::infinity ? 0 : a.__x >> 15 ? -1 : 1; }
static inline __half __kolo_saturate(__half a) { float f = a; return f > 0.0f ? (f < 1.0f ? a : __half(1.0f)) : __half(0.0f); }
static inline __half __kolo_relu(__half a) { return __hisnan(a) || (float)a > 0.0f ? a : __half(0.0f); }
static inline __half __hadd_sat(__half a, __half b) { return __kolo_saturate(__hadd(a, b)); }
static inline __half __hsub_sat(__half a, __half b) { return __kolo_saturate(__hsub(a, b)); }
static inline __half __hmul_sat(__half a, __half b) { return __kolo_saturate(__hmul(a, b)); }
static inline __half __hfma_sat(__half a, __half b, __half c) { return __kolo_saturate(__hfma(a, b, c)); }
static inline __half __hfma_relu(__half a, __half b, __half c) { return __kolo_relu(__hfma(a, b, c)); }

/* ---- order ---- */

static inline bool __heq(__half a, __half b) { return (float)a == (float)b; }
static inline bool __hequ(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a == (float)b; }
static inline bool __hne(__half a, __half b) { return !__hisnan(a) && !__hisnan(b) && (float)a != (float)b; }
static inline bool __hneu(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a != (float)b; }
static inline bool __hlt(__half a, __half b) { return (float)a < (float)b; }
static inline bool __hltu(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a < (float)b; }
static inline bool __hle(__half a, __half b) { return (float)a <= (float)b; }
static inline bool __hleu(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a <= (float)b; }
static inline bool __hgt(__half a, __half b) { return (float)a > (float)b; }
static inline bool __hgtu(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a > (float)b; }
static inline bool __hge(__half a, __half b) { return (float)a >= (float)b; }
static inline bool __hgeu(__half a, __half b) { return __hisnan(a) || __hisnan(b) || (float)a >= (float)b; }
/* What is no number loses against one; -0 is less than 0. */
static inline __half __hmin(__half a, __half b) { if (__hisnan(a)) return __hisnan(b) ? __ushort_as_half(__kolo::half_format::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? a : b; return (float)a < (float)b ? a : b; }
static inline __half __hmin_nan(__half a, __half b) { return __hisnan(a) || __hisnan(b) ? __ushort_as_half(__kolo::half_format::nan) : __hmin(a, b); }
static inline __half __hmax(__half a, __half b) { if (__hisnan(a)) return __hisnan(b) ? __ushort_as_half(__kolo::half_format::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? b : a; return (float)a > (float)b ? a : b; }
static inline __half __hmax_nan(__half a, __half b) { return __hisnan(a) || __hisnan(b) ? __ushort_as_half(__kolo::half_format::nan) : __hmax(a, b); }

/* ---- functions ---- */

static inline __half hsqrt(__half a) { return __half(std::sqrt((double)(float)a)); }
static inline __half hexp(__half a) { return __half(std::exp((double)(float)a)); }
static inline __half hexp2(__half a) { return __half(std::exp2((double)(float)a)); }
static inline __half hlog(__half a) { return __half(std::log((double)(float)a)); }
static inline __half hlog2(__half a) { return __half(std::log2((double)(float)a)); }
static inline __half hlog10(__half a) { return __half(std::log10((double)(float)a)); }
static inline __half hsin(__half a) { return __half(std::sin((double)(float)a)); }
static inline __half hcos(__half a) { return __half(std::cos((double)(float)a)); }
static inline __half htanh(__half a) { return __half(std::tanh((double)(float)a)); }
static inline __half hceil(__half a) { return __half(std::ceil((double)(float)a)); }
static inline __half hfloor(__half a) { return __half(std::floor((double)(float)a)); }
static inline __half htrunc(__half a) { return __half(std::trunc((double)(float)a)); }
static inline __half hrint(__half a) { return __half(std::nearbyint((double)(float)a)); }
static inline __half hrcp(__half a) { return __half(1.0 / (double)(float)a); }
static inline __half hrsqrt(__half a) { return __half(1.0 / std::sqrt((double)(float)a)); }
static inline __half hexp10(__half a) { return __half(std::pow(10.0, (double)(float)a)); }

/* ---- pairs, element by element ---- */

static inline __half2 __hadd2(__half2 a, __half2 b) { return __half2(__hadd(a.x, b.x), __hadd(a.y, b.y)); }
static inline __half2 __hsub2(__half2 a, __half2 b) { return __half2(__hsub(a.x, b.x), __hsub(a.y, b.y)); }
static inline __half2 __hmul2(__half2 a, __half2 b) { return __half2(__hmul(a.x, b.x), __hmul(a.y, b.y)); }
static inline __half2 __hmin2(__half2 a, __half2 b) { return __half2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
static inline __half2 __hmax2(__half2 a, __half2 b) { return __half2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
static inline __half2 __hmin2_nan(__half2 a, __half2 b) { return __half2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)); }
static inline __half2 __hmax2_nan(__half2 a, __half2 b) { return __half2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)); }
static inline __half2 __hadd2_sat(__half2 a, __half2 b) { return __half2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)); }
static inline __half2 __hsub2_sat(__half2 a, __half2 b) { return __half2(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)); }
static inline __half2 __hmul2_sat(__half2 a, __half2 b) { return __half2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)); }
static inline __half2 __hadd2_rn(__half2 a, __half2 b) { return __half2(__hadd_rn(a.x, b.x), __hadd_rn(a.y, b.y)); }
static inline __half2 __hsub2_rn(__half2 a, __half2 b) { return __half2(__hsub_rn(a.x, b.x), __hsub_rn(a.y, b.y)); }
static inline __half2 __hmul2_rn(__half2 a, __half2 b) { return __half2(__hmul_rn(a.x, b.x), __hmul_rn(a.y, b.y)); }
static inline __half2 __h2div(__half2 a, __half2 b) { return __half2(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
static inline __half2 __hfma2_sat(__half2 a, __half2 b, __half2 c) { return __half2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); }
static inline __half2 __hfma2_relu(__half2 a, __half2 b, __half2 c) { return __half2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }
static inline __half2 __hneg2(__half2 a) { return __half2(__hneg(a.x), __hneg(a.y)); }
static inline __half2 __habs2(__half2 a) { return __half2(__habs(a.x), __habs(a.y)); }
static inline __half2 __hisnan2(__half2 a) { return __half2(__half(__hisnan(a.x) ? 1.0f : 0.0f), __half(__hisnan(a.y) ? 1.0f : 0.0f)); }
static inline __half2 __heq2(__half2 a, __half2 b) { return __half2(__half(__heq(a.x, b.x) ? 1.0f : 0.0f), __half(__heq(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbeq2(__half2 a, __half2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }
static inline __half2 __hequ2(__half2 a, __half2 b) { return __half2(__half(__hequ(a.x, b.x) ? 1.0f : 0.0f), __half(__hequ(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbequ2(__half2 a, __half2 b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); }
static inline __half2 __hne2(__half2 a, __half2 b) { return __half2(__half(__hne(a.x, b.x) ? 1.0f : 0.0f), __half(__hne(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbne2(__half2 a, __half2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
static inline __half2 __hneu2(__half2 a, __half2 b) { return __half2(__half(__hneu(a.x, b.x) ? 1.0f : 0.0f), __half(__hneu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbneu2(__half2 a, __half2 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
static inline __half2 __hlt2(__half2 a, __half2 b) { return __half2(__half(__hlt(a.x, b.x) ? 1.0f : 0.0f), __half(__hlt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hblt2(__half2 a, __half2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }
static inline __half2 __hltu2(__half2 a, __half2 b) { return __half2(__half(__hltu(a.x, b.x) ? 1.0f : 0.0f), __half(__hltu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbltu2(__half2 a, __half2 b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); }
static inline __half2 __hle2(__half2 a, __half2 b) { return __half2(__half(__hle(a.x, b.x) ? 1.0f : 0.0f), __half(__hle(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hble2(__half2 a, __half2 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }
static inline __half2 __hleu2(__half2 a, __half2 b) { return __half2(__half(__hleu(a.x, b.x) ? 1.0f : 0.0f), __half(__hleu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbleu2(__half2 a, __half2 b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); }
static inline __half2 __hgt2(__half2 a, __half2 b) { return __half2(__half(__hgt(a.x, b.x) ? 1.0f : 0.0f), __half(__hgt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgt2(__half2 a, __half2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }
static inline __half2 __hgtu2(__half2 a, __half2 b) { return __half2(__half(__hgtu(a.x, b.x) ? 1.0f : 0.0f), __half(__hgtu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgtu2(__half2 a, __half2 b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); }
static inline __half2 __hge2(__half2 a, __half2 b) { return __half2(__half(__hge(a.x, b.x) ? 1.0f : 0.0f), __half(__hge(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbge2(__half2 a, __half2 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }
static inline __half2 __hgeu2(__half2 a, __half2 b) { return __half2(__half(__hgeu(a.x, b.x) ? 1.0f : 0.0f), __half(__hgeu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgeu2(__half2 a, __half2 b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); }
static inline __half2 h2sqrt(__half2 a) { return __half2(hsqrt(a.x), hsqrt(a.y)); }
static inline __half2 h2exp(__half2 a) { return __half2(hexp(a.x), hexp(a.y)); }
static inline __half2 h2exp2(__half2 a) { return __half2(hexp2(a.x), hexp2(a.y)); }
static inline __half2 h2log(__half2 a) { return __half2(hlog(a.x), hlog(a.y)); }
static inline __half2 h2log2(__half2 a) { return __half2(hlog2(a.x), hlog2(a.y)); }
static inline __half2 h2log10(__half2 a) { return __half2(hlog10(a.x), hlog10(a.y)); }
static inline __half2 h2sin(__half2 a) { return __half2(hsin(a.x), hsin(a.y)); }
static inline __half2 h2cos(__half2 a) { return __half2(hcos(a.x), hcos(a.y)); }
static inline __half2 h2tanh(__half2 a) { return __half2(htanh(a.x), htanh(a.y)); }
static inline __half2 h2ceil(__half2 a) { return __half2(hceil(a.x), hceil(a.y)); }
static inline __half2 h2floor(__half2 a) { return __half2(hfloor(a.x), hfloor(a.y)); }
static inline __half2 h2trunc(__half2 a) { return __half2(htrunc(a.x), htrunc(a.y)); }
static inline __half2 h2rint(__half2 a) { return __half2(hrint(a.x), hrint(a.y)); }
static inline __half2 h2rcp(__half2 a) { return __half2(hrcp(a.x), hrcp(a.y)); }
static inline __half2 h2rsqrt(__half2 a) { return __half2(hrsqrt(a.x), hrsqrt(a.y)); }
static inline __half2 h2exp10(__half2 a) { return __half2(hexp10(a.x), hexp10(a.y)); }

/* ---- operators ---- */

static inline __half operator+(const __half &a, const __half &b) { return __hadd(a, b); }
static inline __half &operator+=(__half &a, const __half &b) { return a = __hadd(a, b); }
static inline __half2 operator+(const __half2 &a, const __half2 &b) { return __hadd2(a, b); }
static inline __half2 &operator+=(__half2 &a, const __half2 &b) { return a = __hadd2(a, b); }
static inline __half operator-(const __half &a, const __half &b) { return __hsub(a, b); }
static inline __half &operator-=(__half &a, const __half &b) { return a = __hsub(a, b); }
static inline __half2 operator-(const __half2 &a, const __half2 &b) { return __hsub2(a, b); }
static inline __half2 &operator-=(__half2 &a, const __half2 &b) { return a = __hsub2(a, b); }
static inline __half operator*(const __half &a, const __half &b) { return __hmul(a, b); }
static inline __half &operator*=(__half &a, const __half &b) { return a = __hmul(a, b); }
static inline __half2 operator*(const __half2 &a, const __half2 &b) { return __hmul2(a, b); }
static inline __half2 &operator*=(__half2 &a, const __half2 &b) { return a = __hmul2(a, b); }
static inline __half operator/(const __half &a, const __half &b) { return __hdiv(a, b); }
static inline __half &operator/=(__half &a, const __half &b) { return a = __hdiv(a, b); }
static inline __half2 operator/(const __half2 &a, const __half2 &b) { return __h2div(a, b); }
static inline __half2 &operator/=(__half2 &a, const __half2 &b) { return a = __h2div(a, b); }
static inline __half operator+(const __half &a) { return a; }
static inline __half operator-(const __half &a) { return __hneg(a); }
static inline __half &operator++(__half &a) { return a = a + __half(1.0f); }
static inline __half &operator--(__half &a) { return a = a - __half(1.0f); }
static inline __half operator++(__half &a, int) { __half old = a; ++a; return old; }
static inline __half operator--(__half &a, int) { __half old = a; --a; return old; }
static inline __half2 operator+(const __half2 &a) { return a; }
static inline __half2 operator-(const __half2 &a) { return __hneg2(a); }
static inline __half2 &operator++(__half2 &a) { return a = a + __half2(__half(1.0f), __half(1.0f)); }
static inline __half2 &operator--(__half2 &a) { return a = a - __half2(__half(1.0f), __half(1.0f)); }
static inline __half2 operator++(__half2 &a, int) { __half2 old = a; ++a; return old; }
static inline __half2 operator--(__half2 &a, int) { __half2 old = a; --a; return old; }
static inline bool operator==(const __half &a, const __half &b) { return __heq(a, b); }
static inline bool operator==(const __half2 &a, const __half2 &b) { return __hbeq2(a, b); }
static inline bool operator!=(const __half &a, const __half &b) { return __hneu(a, b); }
static inline bool operator!=(const __half2 &a, const __half2 &b) { return __hbneu2(a, b); }
static inline bool operator<(const __half &a, const __half &b) { return __hlt(a, b); }
static inline bool operator<(const __half2 &a, const __half2 &b) { return __hblt2(a, b); }
static inline bool operator<=(const __half &a, const __half &b) { return __hle(a, b); }
static inline bool operator<=(const __half2 &a, const __half2 &b) { return __hble2(a, b); }
static inline bool operator>(const __half &a, const __half &b) { return __hgt(a, b); }
static inline bool operator>(const __half2 &a, const __half2 &b) { return __hbgt2(a, b); }
static inline bool operator>=(const __half &a, const __half &b) { return __hge(a, b); }
static inline bool operator>=(const __half2 &a, const __half2 &b) { return __hbge2(a, b); }

/* ---- in kernels ---- */

#if defined(__KOLO_NVCC__)
static inline __half atomicAdd(__half *p, __half v) { return __kolo::update(p, [v](__half old) { return __hadd(old, v); }); }
static inline __half2 atomicAdd(__half2 *p, __half2 v) { return __kolo::update(p, [v](__half2 old) { return __hadd2(old, v); }); }
static inline __half atomicAdd_block(__half *p, __half v) { return __kolo::update(p, [v](__half old) { return __hadd(old, v); }); }
static inline __half2 atomicAdd_block(__half2 *p, __half2 v) { return __kolo::update(p, [v](__half2 old) { return __hadd2(old, v); }); }
static inline __half atomicAdd_system(__half *p, __half v) { return __kolo::update(p, [v](__half old) { return __hadd(old, v); }); }
static inline __half2 atomicAdd_system(__half2 *p, __half2 v) { return __kolo::update(p, [v](__half2 old) { return __hadd2(old, v); }); }
#endif

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
