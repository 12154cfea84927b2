/* SPDX-License-Identifier: Apache-2.0 */
/**
 * arithmetic.h - the functions on numbers that device code has without including anything, besides the C library's.
 *
 * Fast forms (__expf ...) are the accurate ones. Where a rounding is named the result is rounded so; conversions to integers saturate.
 */
#ifndef KOLO_CUDA_ARITHMETIC_H
#define KOLO_CUDA_ARITHMETIC_H

#pragma GCC system_header

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

/* clang-format off */

/* ---- the smaller and the larger ---- */

#define KOLO_CUDA_MINMAX(a, b, r)                                                                                                          \
    static inline constexpr r min(a x, b y) { return (r)x < (r)y ? (r)x : (r)y; }                                                          \
    static inline constexpr r max(a x, b y) { return (r)x > (r)y ? (r)x : (r)y; }
KOLO_CUDA_MINMAX(int, int, int)
KOLO_CUDA_MINMAX(unsigned, unsigned, unsigned)
KOLO_CUDA_MINMAX(int, unsigned, unsigned)
KOLO_CUDA_MINMAX(unsigned, int, unsigned)
KOLO_CUDA_MINMAX(long, long, long)
KOLO_CUDA_MINMAX(unsigned long, unsigned long, unsigned long)
KOLO_CUDA_MINMAX(long, unsigned long, unsigned long)
KOLO_CUDA_MINMAX(unsigned long, long, unsigned long)
KOLO_CUDA_MINMAX(long long, long long, long long)
KOLO_CUDA_MINMAX(unsigned long long, unsigned long long, unsigned long long)
KOLO_CUDA_MINMAX(long long, unsigned long long, unsigned long long)
KOLO_CUDA_MINMAX(unsigned long long, long long, unsigned long long)
#undef KOLO_CUDA_MINMAX
static inline float min(float x, float y) { return ::fminf(x, y); }
static inline float max(float x, float y) { return ::fmaxf(x, y); }
static inline double min(double x, double y) { return ::fmin(x, y); }
static inline double max(double x, double y) { return ::fmax(x, y); }
static inline double min(float x, double y) { return ::fmin((double)x, y); }
static inline double max(float x, double y) { return ::fmax((double)x, y); }
static inline double min(double x, float y) { return ::fmin(x, (double)y); }
static inline double max(double x, float y) { return ::fmax(x, (double)y); }

/* ---- fast forms; the C library declares some of these names and has none of them ---- */

extern "C" {
inline float __expf(float x) noexcept { return ::expf(x); }
inline float __exp10f(float x) noexcept { return ::powf(10.0f, x); }
inline float __logf(float x) noexcept { return ::logf(x); }
inline float __log2f(float x) noexcept { return ::log2f(x); }
inline float __log10f(float x) noexcept { return ::log10f(x); }
inline float __powf(float x, float y) noexcept { return ::powf(x, y); }
inline float __sinf(float x) noexcept { return ::sinf(x); }
inline float __cosf(float x) noexcept { return ::cosf(x); }
inline float __tanf(float x) noexcept { return ::tanf(x); }
inline float __tanhf(float x) noexcept { return ::tanhf(x); }
inline void __sincosf(float x, float *s, float *c) noexcept { *s = ::sinf(x); *c = ::cosf(x); }
}
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline double fdivide(double x, double y) { return x / y; }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

/* ---- functions missing from the C library ---- */

static inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
static inline float rsqrtf(float x) { return (float)(1.0 / ::sqrt((double)x)); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline double rcbrt(double x) { return 1.0 / ::cbrt(x); }
static inline float rcbrtf(float x) { return 1.0f / ::cbrtf(x); }
static inline double rhypot(double x, double y) { return 1.0 / ::hypot(x, y); }
static inline float rhypotf(float x, float y) { return 1.0f / ::hypotf(x, y); }
static inline double norm3d(double x, double y, double z) { return ::sqrt(x * x + y * y + z * z); }
static inline float norm3df(float x, float y, float z) { return (float)norm3d(x, y, z); }
static inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
static inline float rnorm3df(float x, float y, float z) { return (float)rnorm3d(x, y, z); }
static inline double norm4d(double x, double y, double z, double w) { return ::sqrt(x * x + y * y + z * z + w * w); }
static inline float norm4df(float x, float y, float z, float w) { return (float)norm4d(x, y, z, w); }
static inline double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
static inline float rnorm4df(float x, float y, float z, float w) { return (float)rnorm4d(x, y, z, w); }
static inline double normcdf(double x) { return 0.5 * ::erfc(-x * M_SQRT1_2); }
static inline float normcdff(float x) { return (float)normcdf(x); }

namespace __kolo
{

/** Exact where the result is: the argument is taken to [-1/4, 1/4] first, which loses nothing. */
inline double sin_of_pi(double x)
{
    double half = ::rint(2.0 * x), rest = (x - 0.5 * half) * M_PI;
    int quarter = (int)(::fmod(half, 4.0) + 4.0) % 4;

    if (!std::isfinite(x)) return NAN;
    switch (quarter) {
    case 0: return ::sin(rest);
    case 1: return ::cos(rest);
    case 2: return -::sin(rest);
    default: return -::cos(rest);
    }
}

inline double cos_of_pi(double x)
{
    double half = ::rint(2.0 * x), rest = (x - 0.5 * half) * M_PI;
    int quarter = (int)(::fmod(half, 4.0) + 4.0) % 4;

    if (!std::isfinite(x)) return NAN;
    switch (quarter) {
    case 0: return ::cos(rest);
    case 1: return -::sin(rest);
    case 2: return -::cos(rest);
    default: return ::sin(rest);
    }
}

/** Solve f(x) = y by Newton's method from a first guess; the derivative is erf's or erfc's, of sign `s`. */
template <class F> inline double inverse_error(F f, double y, double x, double s)
{
    for (int i = 0; i < 40; i++) {
        double step = (f(x) - y) / (s * M_2_SQRTPI * ::exp(-x * x));

        if (!std::isfinite(step)) break;
        x -= step / (1.0 + x * step); /* Halley */
        if (::fabs(step) <= 1e-17 * ::fabs(x)) break;
    }
    return x;
}

inline double guess(double y) /* of erfinv, |y| < 1; Winitzki */
{
    double l = ::log((1.0 - y) * (1.0 + y)), a = 2.0 / (M_PI * 0.147) + 0.5 * l;

    return ::copysign(::sqrt(::sqrt(a * a - l / 0.147) - a), y);
}

} // namespace __kolo

static inline double sinpi(double x) { return __kolo::sin_of_pi(x); }
static inline float sinpif(float x) { return (float)__kolo::sin_of_pi(x); }
static inline double cospi(double x) { return __kolo::cos_of_pi(x); }
static inline float cospif(float x) { return (float)__kolo::cos_of_pi(x); }
static inline void sincospi(double x, double *s, double *c) { *s = sinpi(x); *c = cospi(x); }
static inline void sincospif(float x, float *s, float *c) { *s = sinpif(x); *c = cospif(x); }

static inline double erfinv(double y)
{
    if (!(y > -1.0 && y < 1.0)) return y == 1.0 ? INFINITY : y == -1.0 ? -INFINITY : NAN;
    return y == 0.0 ? y : __kolo::inverse_error([](double x) { return ::erf(x); }, y, __kolo::guess(y), 1.0);
}

static inline double erfcinv(double y)
{
    if (!(y > 0.0 && y < 2.0)) return y == 0.0 ? INFINITY : y == 2.0 ? -INFINITY : NAN;
    if (y > 0.5) return y == 1.0 ? 0.0 : erfinv(1.0 - y);
    double x = ::sqrt(-::log(y * ::sqrt(M_PI * -::log(y)))); /* the tail */
    return __kolo::inverse_error([](double v) { return ::erfc(v); }, y, std::isfinite(x) && x > 0 ? x : 0.5, -1.0);
}
static inline float erfinvf(float y) { return (float)erfinv((double)y); }
static inline float erfcinvf(float y) { return (float)erfcinv((double)y); }
static inline double normcdfinv(double y) { return -M_SQRT2 * erfcinv(2.0 * y); }
static inline float normcdfinvf(float y) { return (float)normcdfinv((double)y); }
static inline double erfcx(double x) { return x < 25 ? ::exp(x * x) * ::erfc(x) : (M_2_SQRTPI / 2) / x * (1 - 0.5 / (x * x)); }
static inline float erfcxf(float x) { return (float)erfcx((double)x); }

/* ---- bits ---- */

#ifdef __POPCNT__
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
#else /* where there is no such instruction the compiler calls a function, also from loops that were vectors */
static inline int __popc(unsigned x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
static inline int __popcll(unsigned long long x) { return __popc((unsigned)x) + __popc((unsigned)(x >> 32)); }
#endif
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned select)
{
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;

    for (int i = 0; i < 4; i++) {
        unsigned s = select >> 4 * i, byte = (unsigned)(bytes >> 8 * (s & 7)) & 0xff;
        result |= (s & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
    }
    return result;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) { return (unsigned)(((uint64_t)hi << 32 | lo) << (n & 31) >> 32); }
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) { return (unsigned)(((uint64_t)hi << 32 | lo) >> (n & 31)); }
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? lo : __funnelshift_l(lo, hi, n); }
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? hi : __funnelshift_r(lo, hi, n); }
static inline int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)((unsigned __int128)x * y >> 64); }
static inline int __mul24(int x, int y) { return (int)((uint32_t)((int32_t)((uint32_t)x << 8) >> 8) * (uint32_t)((int32_t)((uint32_t)y << 8) >> 8)); }
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
static inline unsigned __sad(int x, int y, unsigned z) { return (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x) + z; }
static inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
static inline int __hadd(int x, int y) { return (int)(((int64_t)x + y) >> 1); }
static inline int __rhadd(int x, int y) { return (int)(((int64_t)x + y + 1) >> 1); }
static inline unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((uint64_t)x + y) >> 1); }
static inline unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((uint64_t)x + y + 1) >> 1); }
static inline int __dp4a(int a, int b, int c)
{
    uint32_t sum = (uint32_t)c;

    for (int i = 0; i < 32; i += 8) sum += (uint32_t)((int)(int8_t)(a >> i) * (int)(int8_t)(b >> i));
    return (int)sum;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}

/* ---- the same bits as another type ---- */

namespace __kolo
{

template <class To, class From> inline To same_bits(From from)
{
    To to;

    static_assert(sizeof to == sizeof from, "bits need as much room");
    memcpy(&to, &from, sizeof to);
    return to;
}

} // namespace __kolo

static inline int __float_as_int(float x) { return __kolo::same_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return __kolo::same_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return __kolo::same_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return __kolo::same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return __kolo::same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return __kolo::same_bits<double>(x); }
static inline int __double2hiint(double x) { return (int)((unsigned long long)__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int hi, int lo) { return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo)); }

/* ---- rounding that is named ---- */

namespace __kolo
{

/** Hide a value from the optimiser: it is unknown from here on, and its computation does not move past this. */
template <class T> inline void hide(T &value)
{
    __asm__ __volatile__("" : "+m"(value) : : "memory");
}

/** The result of `operation` in the processor's rounding mode `mode`. */
template <class R, class F, class... A> inline R rounded(int mode, F operation, A... operands)
{
    int before = std::fegetround();
    R result;

    (void)std::fesetround(mode);
    (hide(operands), ...);
    result = operation(operands...);
    hide(result);
    (void)std::fesetround(before);
    return result;
}

/** `x`, which is a whole number, as an integer; the nearest one there is. NaN becomes 0, or if one of the types has 64
 * bits the value with only its highest bit set. Source: PTX ISA, cvt. */
template <class To, class From> inline constexpr To saturate(From x)
{
    constexpr From limit = (From)(1ull << (std::numeric_limits<To>::digits - 1)) * (From)2;

    if (x != x) return sizeof(From) < 8 && sizeof(To) < 8 ? 0 : (To)(1ull << (8 * sizeof(To) - 1));
    if (x >= limit) return std::numeric_limits<To>::max();
    if (std::is_signed<To>::value ? x < -limit : x <= (From)-1) return std::numeric_limits<To>::min();
    return (To)x;
}

/** A cast in device code: from real numbers to integers as devices do it, else an ordinary cast. */
template <class To, class From> inline constexpr To cast(From x)
{
    if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value && !std::is_same<To, bool>::value) {
        if constexpr (sizeof(To) < 4)
            return (To)saturate<int>(x);
        else
            return saturate<To>(x);
    } else {
        return (To)x;
    }
}

/** `(x, nothing())` is x, and nothing() if x is void. */
struct nothing {
};
template <class T> inline constexpr T &&operator,(T &&x, nothing)
{
    return static_cast<T &&>(x);
}

/** The same to a type that a template was given: any type, void too. */
template <class To, class From> inline constexpr To cast_to(From &&x)
{
    using number = std::remove_cv_t<std::remove_reference_t<From>>;

    if constexpr (std::is_void<To>::value)
        return (void)x;
    else if constexpr (std::is_floating_point<number>::value && std::is_integral<To>::value)
        return cast<To, number>(x);
    else
        return (To)static_cast<From &&>(x);
}

} // namespace __kolo

#define KOLO_CUDA_ROUNDED(name, type, parameters, arguments, ...)                                                                         \
    static inline type name##_rn parameters { auto f = __VA_ARGS__; return f arguments; }                                                  \
    static inline type name##_rz parameters { auto f = __VA_ARGS__; return __kolo::rounded<type>(FE_TOWARDZERO, f, KOLO_CUDA_UNWRAP arguments); } \
    static inline type name##_ru parameters { auto f = __VA_ARGS__; return __kolo::rounded<type>(FE_UPWARD, f, KOLO_CUDA_UNWRAP arguments); }     \
    static inline type name##_rd parameters { auto f = __VA_ARGS__; return __kolo::rounded<type>(FE_DOWNWARD, f, KOLO_CUDA_UNWRAP arguments); }
#define KOLO_CUDA_UNWRAP(...) __VA_ARGS__
#define KOLO_CUDA_ROUNDED_REAL(prefix, type, fused, root)                                                                                  \
    KOLO_CUDA_ROUNDED(prefix##add, type, (type x, type y), (x, y), [](type a, type b) { return a + b; })                                   \
    KOLO_CUDA_ROUNDED(prefix##sub, type, (type x, type y), (x, y), [](type a, type b) { return a - b; })                                   \
    KOLO_CUDA_ROUNDED(prefix##mul, type, (type x, type y), (x, y), [](type a, type b) { return a * b; })                                   \
    KOLO_CUDA_ROUNDED(prefix##div, type, (type x, type y), (x, y), [](type a, type b) { return a / b; })                                   \
    KOLO_CUDA_ROUNDED(prefix##rcp, type, (type x), (x), [](type a) { return (type)1 / a; })                                                \
    KOLO_CUDA_ROUNDED(prefix##sqrt, type, (type x), (x), [](type a) { return root(a); })
KOLO_CUDA_ROUNDED_REAL(__f, float, ::fmaf, ::sqrtf)
KOLO_CUDA_ROUNDED_REAL(__d, double, ::fma, ::sqrt)
KOLO_CUDA_ROUNDED(__fmaf, float, (float x, float y, float z), (x, y, z), [](float a, float b, float c) { return ::fmaf(a, b, c); })
KOLO_CUDA_ROUNDED(__fma, double, (double x, double y, double z), (x, y, z), [](double a, double b, double c) { return ::fma(a, b, c); })
KOLO_CUDA_ROUNDED(__double2float, float, (double x), (x), [](double a) { return (float)a; })
KOLO_CUDA_ROUNDED(__int2float, float, (int x), (x), [](int a) { return (float)a; })
KOLO_CUDA_ROUNDED(__uint2float, float, (unsigned x), (x), [](unsigned a) { return (float)a; })
KOLO_CUDA_ROUNDED(__ll2float, float, (long long x), (x), [](long long a) { return (float)a; })
KOLO_CUDA_ROUNDED(__ull2float, float, (unsigned long long x), (x), [](unsigned long long a) { return (float)a; })
KOLO_CUDA_ROUNDED(__ll2double, double, (long long x), (x), [](long long a) { return (double)a; })
KOLO_CUDA_ROUNDED(__ull2double, double, (unsigned long long x), (x), [](unsigned long long a) { return (double)a; })
#undef KOLO_CUDA_ROUNDED_REAL
#undef KOLO_CUDA_ROUNDED
#undef KOLO_CUDA_UNWRAP
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }

#define KOLO_CUDA_TO_INTEGER(name, from, to)                                                                                               \
    static inline to name##_rn(from x) { return __kolo::saturate<to>(std::nearbyint(x)); }                                                 \
    static inline to name##_rz(from x) { return __kolo::saturate<to>(std::trunc(x)); }                                                     \
    static inline to name##_ru(from x) { return __kolo::saturate<to>(std::ceil(x)); }                                                      \
    static inline to name##_rd(from x) { return __kolo::saturate<to>(std::floor(x)); }
KOLO_CUDA_TO_INTEGER(__float2int, float, int)
KOLO_CUDA_TO_INTEGER(__float2uint, float, unsigned)
KOLO_CUDA_TO_INTEGER(__float2ll, float, long long)
KOLO_CUDA_TO_INTEGER(__float2ull, float, unsigned long long)
KOLO_CUDA_TO_INTEGER(__double2int, double, int)
KOLO_CUDA_TO_INTEGER(__double2uint, double, unsigned)
KOLO_CUDA_TO_INTEGER(__double2ll, double, long long)
KOLO_CUDA_TO_INTEGER(__double2ull, double, unsigned long long)
#undef KOLO_CUDA_TO_INTEGER

/* clang-format on */

#endif
