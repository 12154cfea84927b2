/* SPDX-License-Identifier: Apache-2.0 */
/**
 * half_operations.h - operations on numbers of 16 bits, and pairs of them, in any format. Included once for each type:
 *
 *     KOLO_HALF, KOLO_HALF2   the type, and its pair
 *     KOLO_HALF_FORMAT        its format (small_float.h)
 *     KOLO_HALF_BITS          the function that makes one from its bits
 *     KOLO_HALF_EXACT         a type with sums, products and quotients so exact that rounding them again is correct
 */
/* clang-format off */

/* ---- arithmetic ---- */

static inline KOLO_HALF __hadd(KOLO_HALF a, KOLO_HALF b) { return KOLO_HALF((KOLO_HALF_EXACT)(float)a + (KOLO_HALF_EXACT)(float)b); }
static inline KOLO_HALF __hadd_rn(KOLO_HALF a, KOLO_HALF b) { return __hadd(a, b); }
static inline KOLO_HALF __hsub(KOLO_HALF a, KOLO_HALF b) { return KOLO_HALF((KOLO_HALF_EXACT)(float)a - (KOLO_HALF_EXACT)(float)b); }
static inline KOLO_HALF __hsub_rn(KOLO_HALF a, KOLO_HALF b) { return __hsub(a, b); }
static inline KOLO_HALF __hmul(KOLO_HALF a, KOLO_HALF b) { return KOLO_HALF((KOLO_HALF_EXACT)(float)a * (KOLO_HALF_EXACT)(float)b); }
static inline KOLO_HALF __hmul_rn(KOLO_HALF a, KOLO_HALF b) { return __hmul(a, b); }
static inline KOLO_HALF __hdiv(KOLO_HALF a, KOLO_HALF b) { return KOLO_HALF((KOLO_HALF_EXACT)(float)a / (KOLO_HALF_EXACT)(float)b); }
static inline KOLO_HALF __hfma(KOLO_HALF a, KOLO_HALF b, KOLO_HALF c) { return KOLO_HALF(__kolo::fused_to_odd((float)a, (float)b, (float)c)); }
static inline KOLO_HALF __hneg(KOLO_HALF a) { return KOLO_HALF_BITS((unsigned short)(a.__x ^ 0x8000u)); }
static inline KOLO_HALF __habs(KOLO_HALF a) { return KOLO_HALF_BITS((unsigned short)(a.__x & 0x7fffu)); }
static inline bool __hisnan(KOLO_HALF a) { return (a.__x & 0x7fffu) > KOLO_HALF_FORMAT::infinity; }
static inline int __hisinf(KOLO_HALF a) { return (a.__x & 0x7fffu) != KOLO_HALF_FORMAT::infinity ? 0 : a.__x >> 15 ? -1 : 1; }
static inline KOLO_HALF __kolo_saturate(KOLO_HALF a) { float f = a; return f > 0.0f ? (f < 1.0f ? a : KOLO_HALF(1.0f)) : KOLO_HALF(0.0f); }
static inline KOLO_HALF __kolo_relu(KOLO_HALF a) { return __hisnan(a) || (float)a > 0.0f ? a : KOLO_HALF(0.0f); }
static inline KOLO_HALF __hadd_sat(KOLO_HALF a, KOLO_HALF b) { return __kolo_saturate(__hadd(a, b)); }
static inline KOLO_HALF __hsub_sat(KOLO_HALF a, KOLO_HALF b) { return __kolo_saturate(__hsub(a, b)); }
static inline KOLO_HALF __hmul_sat(KOLO_HALF a, KOLO_HALF b) { return __kolo_saturate(__hmul(a, b)); }
static inline KOLO_HALF __hfma_sat(KOLO_HALF a, KOLO_HALF b, KOLO_HALF c) { return __kolo_saturate(__hfma(a, b, c)); }
static inline KOLO_HALF __hfma_relu(KOLO_HALF a, KOLO_HALF b, KOLO_HALF c) { return __kolo_relu(__hfma(a, b, c)); }

/* ---- order ---- */

static inline bool __heq(KOLO_HALF a, KOLO_HALF b) { return (float)a == (float)b; }
static inline bool __hequ(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a == (float)b; }
static inline bool __hne(KOLO_HALF a, KOLO_HALF b) { return !__hisnan(a) && !__hisnan(b) && (float)a != (float)b; }
static inline bool __hneu(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a != (float)b; }
static inline bool __hlt(KOLO_HALF a, KOLO_HALF b) { return (float)a < (float)b; }
static inline bool __hltu(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a < (float)b; }
static inline bool __hle(KOLO_HALF a, KOLO_HALF b) { return (float)a <= (float)b; }
static inline bool __hleu(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a <= (float)b; }
static inline bool __hgt(KOLO_HALF a, KOLO_HALF b) { return (float)a > (float)b; }
static inline bool __hgtu(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a > (float)b; }
static inline bool __hge(KOLO_HALF a, KOLO_HALF b) { return (float)a >= (float)b; }
static inline bool __hgeu(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) || (float)a >= (float)b; }
/* NaN loses against a number; -0 is less than 0. */
static inline KOLO_HALF __hmin(KOLO_HALF a, KOLO_HALF b) { if (__hisnan(a)) return __hisnan(b) ? KOLO_HALF_BITS(KOLO_HALF_FORMAT::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? a : b; return (float)a < (float)b ? a : b; }
static inline KOLO_HALF __hmin_nan(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) ? KOLO_HALF_BITS(KOLO_HALF_FORMAT::nan) : __hmin(a, b); }
static inline KOLO_HALF __hmax(KOLO_HALF a, KOLO_HALF b) { if (__hisnan(a)) return __hisnan(b) ? KOLO_HALF_BITS(KOLO_HALF_FORMAT::nan) : b; if (__hisnan(b)) return a; if ((float)a == (float)b) return a.__x >> 15 ? b : a; return (float)a > (float)b ? a : b; }
static inline KOLO_HALF __hmax_nan(KOLO_HALF a, KOLO_HALF b) { return __hisnan(a) || __hisnan(b) ? KOLO_HALF_BITS(KOLO_HALF_FORMAT::nan) : __hmax(a, b); }

/* ---- functions ---- */

static inline KOLO_HALF hsqrt(KOLO_HALF a) { return KOLO_HALF(std::sqrt((double)(float)a)); }
static inline KOLO_HALF hexp(KOLO_HALF a) { return KOLO_HALF(std::exp((double)(float)a)); }
static inline KOLO_HALF hexp2(KOLO_HALF a) { return KOLO_HALF(std::exp2((double)(float)a)); }
static inline KOLO_HALF hlog(KOLO_HALF a) { return KOLO_HALF(std::log((double)(float)a)); }
static inline KOLO_HALF hlog2(KOLO_HALF a) { return KOLO_HALF(std::log2((double)(float)a)); }
static inline KOLO_HALF hlog10(KOLO_HALF a) { return KOLO_HALF(std::log10((double)(float)a)); }
static inline KOLO_HALF hsin(KOLO_HALF a) { return KOLO_HALF(std::sin((double)(float)a)); }
static inline KOLO_HALF hcos(KOLO_HALF a) { return KOLO_HALF(std::cos((double)(float)a)); }
static inline KOLO_HALF htanh(KOLO_HALF a) { return KOLO_HALF(std::tanh((double)(float)a)); }
static inline KOLO_HALF hceil(KOLO_HALF a) { return KOLO_HALF(std::ceil((double)(float)a)); }
static inline KOLO_HALF hfloor(KOLO_HALF a) { return KOLO_HALF(std::floor((double)(float)a)); }
static inline KOLO_HALF htrunc(KOLO_HALF a) { return KOLO_HALF(std::trunc((double)(float)a)); }
static inline KOLO_HALF hrint(KOLO_HALF a) { return KOLO_HALF(std::nearbyint((double)(float)a)); }
static inline KOLO_HALF hrcp(KOLO_HALF a) { return KOLO_HALF(1.0 / (double)(float)a); }
static inline KOLO_HALF hrsqrt(KOLO_HALF a) { return KOLO_HALF(1.0 / std::sqrt((double)(float)a)); }
static inline KOLO_HALF hexp10(KOLO_HALF a) { return KOLO_HALF(std::pow(10.0, (double)(float)a)); }

/* ---- pairs, element by element ---- */

static inline KOLO_HALF2 __hadd2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hadd(a.x, b.x), __hadd(a.y, b.y)); }
static inline KOLO_HALF2 __hsub2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hsub(a.x, b.x), __hsub(a.y, b.y)); }
static inline KOLO_HALF2 __hmul2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmul(a.x, b.x), __hmul(a.y, b.y)); }
static inline KOLO_HALF2 __hmin2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
static inline KOLO_HALF2 __hmax2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
static inline KOLO_HALF2 __hmin2_nan(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)); }
static inline KOLO_HALF2 __hmax2_nan(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)); }
static inline KOLO_HALF2 __hadd2_sat(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)); }
static inline KOLO_HALF2 __hsub2_sat(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)); }
static inline KOLO_HALF2 __hmul2_sat(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)); }
static inline KOLO_HALF2 __hadd2_rn(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hadd_rn(a.x, b.x), __hadd_rn(a.y, b.y)); }
static inline KOLO_HALF2 __hsub2_rn(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hsub_rn(a.x, b.x), __hsub_rn(a.y, b.y)); }
static inline KOLO_HALF2 __hmul2_rn(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hmul_rn(a.x, b.x), __hmul_rn(a.y, b.y)); }
static inline KOLO_HALF2 __h2div(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
static inline KOLO_HALF2 __hfma2(KOLO_HALF2 a, KOLO_HALF2 b, KOLO_HALF2 c) { return KOLO_HALF2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
static inline KOLO_HALF2 __hfma2_sat(KOLO_HALF2 a, KOLO_HALF2 b, KOLO_HALF2 c) { return KOLO_HALF2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); }
static inline KOLO_HALF2 __hfma2_relu(KOLO_HALF2 a, KOLO_HALF2 b, KOLO_HALF2 c) { return KOLO_HALF2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }
static inline KOLO_HALF2 __hneg2(KOLO_HALF2 a) { return KOLO_HALF2(__hneg(a.x), __hneg(a.y)); }
static inline KOLO_HALF2 __habs2(KOLO_HALF2 a) { return KOLO_HALF2(__habs(a.x), __habs(a.y)); }
static inline KOLO_HALF2 __hisnan2(KOLO_HALF2 a) { return KOLO_HALF2(KOLO_HALF(__hisnan(a.x) ? 1.0f : 0.0f), KOLO_HALF(__hisnan(a.y) ? 1.0f : 0.0f)); }
static inline KOLO_HALF2 __heq2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__heq(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__heq(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbeq2(KOLO_HALF2 a, KOLO_HALF2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }
static inline KOLO_HALF2 __hequ2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hequ(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hequ(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbequ2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); }
static inline KOLO_HALF2 __hne2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hne(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hne(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbne2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
static inline KOLO_HALF2 __hneu2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hneu(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hneu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbneu2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
static inline KOLO_HALF2 __hlt2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hlt(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hlt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hblt2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }
static inline KOLO_HALF2 __hltu2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hltu(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hltu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbltu2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); }
static inline KOLO_HALF2 __hle2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hle(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hle(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hble2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }
static inline KOLO_HALF2 __hleu2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hleu(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hleu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbleu2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); }
static inline KOLO_HALF2 __hgt2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hgt(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hgt(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgt2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }
static inline KOLO_HALF2 __hgtu2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hgtu(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hgtu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgtu2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); }
static inline KOLO_HALF2 __hge2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hge(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hge(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbge2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }
static inline KOLO_HALF2 __hgeu2(KOLO_HALF2 a, KOLO_HALF2 b) { return KOLO_HALF2(KOLO_HALF(__hgeu(a.x, b.x) ? 1.0f : 0.0f), KOLO_HALF(__hgeu(a.y, b.y) ? 1.0f : 0.0f)); }
static inline bool __hbgeu2(KOLO_HALF2 a, KOLO_HALF2 b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); }
static inline KOLO_HALF2 h2sqrt(KOLO_HALF2 a) { return KOLO_HALF2(hsqrt(a.x), hsqrt(a.y)); }
static inline KOLO_HALF2 h2exp(KOLO_HALF2 a) { return KOLO_HALF2(hexp(a.x), hexp(a.y)); }
static inline KOLO_HALF2 h2exp2(KOLO_HALF2 a) { return KOLO_HALF2(hexp2(a.x), hexp2(a.y)); }
static inline KOLO_HALF2 h2log(KOLO_HALF2 a) { return KOLO_HALF2(hlog(a.x), hlog(a.y)); }
static inline KOLO_HALF2 h2log2(KOLO_HALF2 a) { return KOLO_HALF2(hlog2(a.x), hlog2(a.y)); }
static inline KOLO_HALF2 h2log10(KOLO_HALF2 a) { return KOLO_HALF2(hlog10(a.x), hlog10(a.y)); }
static inline KOLO_HALF2 h2sin(KOLO_HALF2 a) { return KOLO_HALF2(hsin(a.x), hsin(a.y)); }
static inline KOLO_HALF2 h2cos(KOLO_HALF2 a) { return KOLO_HALF2(hcos(a.x), hcos(a.y)); }
static inline KOLO_HALF2 h2tanh(KOLO_HALF2 a) { return KOLO_HALF2(htanh(a.x), htanh(a.y)); }
static inline KOLO_HALF2 h2ceil(KOLO_HALF2 a) { return KOLO_HALF2(hceil(a.x), hceil(a.y)); }
static inline KOLO_HALF2 h2floor(KOLO_HALF2 a) { return KOLO_HALF2(hfloor(a.x), hfloor(a.y)); }
static inline KOLO_HALF2 h2trunc(KOLO_HALF2 a) { return KOLO_HALF2(htrunc(a.x), htrunc(a.y)); }
static inline KOLO_HALF2 h2rint(KOLO_HALF2 a) { return KOLO_HALF2(hrint(a.x), hrint(a.y)); }
static inline KOLO_HALF2 h2rcp(KOLO_HALF2 a) { return KOLO_HALF2(hrcp(a.x), hrcp(a.y)); }
static inline KOLO_HALF2 h2rsqrt(KOLO_HALF2 a) { return KOLO_HALF2(hrsqrt(a.x), hrsqrt(a.y)); }
static inline KOLO_HALF2 h2exp10(KOLO_HALF2 a) { return KOLO_HALF2(hexp10(a.x), hexp10(a.y)); }

/* ---- operators ---- */

static inline KOLO_HALF operator+(const KOLO_HALF &a, const KOLO_HALF &b) { return __hadd(a, b); }
static inline KOLO_HALF &operator+=(KOLO_HALF &a, const KOLO_HALF &b) { return a = __hadd(a, b); }
static inline KOLO_HALF2 operator+(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hadd2(a, b); }
static inline KOLO_HALF2 &operator+=(KOLO_HALF2 &a, const KOLO_HALF2 &b) { return a = __hadd2(a, b); }
static inline KOLO_HALF operator-(const KOLO_HALF &a, const KOLO_HALF &b) { return __hsub(a, b); }
static inline KOLO_HALF &operator-=(KOLO_HALF &a, const KOLO_HALF &b) { return a = __hsub(a, b); }
static inline KOLO_HALF2 operator-(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hsub2(a, b); }
static inline KOLO_HALF2 &operator-=(KOLO_HALF2 &a, const KOLO_HALF2 &b) { return a = __hsub2(a, b); }
static inline KOLO_HALF operator*(const KOLO_HALF &a, const KOLO_HALF &b) { return __hmul(a, b); }
static inline KOLO_HALF &operator*=(KOLO_HALF &a, const KOLO_HALF &b) { return a = __hmul(a, b); }
static inline KOLO_HALF2 operator*(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hmul2(a, b); }
static inline KOLO_HALF2 &operator*=(KOLO_HALF2 &a, const KOLO_HALF2 &b) { return a = __hmul2(a, b); }
static inline KOLO_HALF operator/(const KOLO_HALF &a, const KOLO_HALF &b) { return __hdiv(a, b); }
static inline KOLO_HALF &operator/=(KOLO_HALF &a, const KOLO_HALF &b) { return a = __hdiv(a, b); }
static inline KOLO_HALF2 operator/(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __h2div(a, b); }
static inline KOLO_HALF2 &operator/=(KOLO_HALF2 &a, const KOLO_HALF2 &b) { return a = __h2div(a, b); }
static inline KOLO_HALF operator+(const KOLO_HALF &a) { return a; }
static inline KOLO_HALF operator-(const KOLO_HALF &a) { return __hneg(a); }
static inline KOLO_HALF &operator++(KOLO_HALF &a) { return a = a + KOLO_HALF(1.0f); }
static inline KOLO_HALF &operator--(KOLO_HALF &a) { return a = a - KOLO_HALF(1.0f); }
static inline KOLO_HALF operator++(KOLO_HALF &a, int) { KOLO_HALF old = a; ++a; return old; }
static inline KOLO_HALF operator--(KOLO_HALF &a, int) { KOLO_HALF old = a; --a; return old; }
static inline KOLO_HALF2 operator+(const KOLO_HALF2 &a) { return a; }
static inline KOLO_HALF2 operator-(const KOLO_HALF2 &a) { return __hneg2(a); }
static inline KOLO_HALF2 &operator++(KOLO_HALF2 &a) { return a = a + KOLO_HALF2(KOLO_HALF(1.0f), KOLO_HALF(1.0f)); }
static inline KOLO_HALF2 &operator--(KOLO_HALF2 &a) { return a = a - KOLO_HALF2(KOLO_HALF(1.0f), KOLO_HALF(1.0f)); }
static inline KOLO_HALF2 operator++(KOLO_HALF2 &a, int) { KOLO_HALF2 old = a; ++a; return old; }
static inline KOLO_HALF2 operator--(KOLO_HALF2 &a, int) { KOLO_HALF2 old = a; --a; return old; }
static inline bool operator==(const KOLO_HALF &a, const KOLO_HALF &b) { return __heq(a, b); }
static inline bool operator==(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hbeq2(a, b); }
static inline bool operator!=(const KOLO_HALF &a, const KOLO_HALF &b) { return __hneu(a, b); }
static inline bool operator!=(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hbneu2(a, b); }
static inline bool operator<(const KOLO_HALF &a, const KOLO_HALF &b) { return __hlt(a, b); }
static inline bool operator<(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hblt2(a, b); }
static inline bool operator<=(const KOLO_HALF &a, const KOLO_HALF &b) { return __hle(a, b); }
static inline bool operator<=(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hble2(a, b); }
static inline bool operator>(const KOLO_HALF &a, const KOLO_HALF &b) { return __hgt(a, b); }
static inline bool operator>(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hbgt2(a, b); }
static inline bool operator>=(const KOLO_HALF &a, const KOLO_HALF &b) { return __hge(a, b); }
static inline bool operator>=(const KOLO_HALF2 &a, const KOLO_HALF2 &b) { return __hbge2(a, b); }

/* ---- in kernels ---- */

#if defined(__KOLO_NVCC__)
static inline KOLO_HALF atomicAdd(KOLO_HALF *p, KOLO_HALF v) { return __kolo::update(p, [v](KOLO_HALF old) { return __hadd(old, v); }); }
static inline KOLO_HALF2 atomicAdd(KOLO_HALF2 *p, KOLO_HALF2 v) { return __kolo::update(p, [v](KOLO_HALF2 old) { return __hadd2(old, v); }); }
static inline KOLO_HALF atomicAdd_block(KOLO_HALF *p, KOLO_HALF v) { return __kolo::update(p, [v](KOLO_HALF old) { return __hadd(old, v); }); }
static inline KOLO_HALF2 atomicAdd_block(KOLO_HALF2 *p, KOLO_HALF2 v) { return __kolo::update(p, [v](KOLO_HALF2 old) { return __hadd2(old, v); }); }
static inline KOLO_HALF atomicAdd_system(KOLO_HALF *p, KOLO_HALF v) { return __kolo::update(p, [v](KOLO_HALF old) { return __hadd(old, v); }); }
static inline KOLO_HALF2 atomicAdd_system(KOLO_HALF2 *p, KOLO_HALF2 v) { return __kolo::update(p, [v](KOLO_HALF2 old) { return __hadd2(old, v); }); }
#endif

#undef KOLO_HALF
#undef KOLO_HALF2
#undef KOLO_HALF_FORMAT
#undef KOLO_HALF_BITS
#undef KOLO_HALF_EXACT

/* clang-format on */
