/* SPDX-License-Identifier: Apache-2.0 */
/**
 * integer.h - functions on integers: smaller and larger, dot products, and the ones that take a word as two halves or four bytes.
 *
 * In a name that ends in 2 or 4, each half or byte has its own result; s and u are signed and unsigned, ss and us saturate.
 */
#ifndef KOLO_CUDA_INTEGER_H
#define KOLO_CUDA_INTEGER_H

#pragma GCC system_header

#include <cstdint>
#include <type_traits>

/* clang-format off */

static inline unsigned umin(unsigned x, unsigned y) { return x < y ? x : y; }
static inline unsigned umax(unsigned x, unsigned y) { return x > y ? x : y; }
static inline long long llmin(long long x, long long y) { return x < y ? x : y; }
static inline long long llmax(long long x, long long y) { return x > y ? x : y; }
static inline unsigned long long ullmin(unsigned long long x, unsigned long long y) { return x < y ? x : y; }
static inline unsigned long long ullmax(unsigned long long x, unsigned long long y) { return x > y ? x : y; }

/** The `which`th set bit of `mask` from bit `base` upwards, itself the first, or downwards for a negative number; none: all ones. */
static inline unsigned __fns(unsigned mask, unsigned base, int which)
{
    int step = which < 0 ? -1 : 1, left = which * step;

    if (base > 31) return 0xffffffffu;
    if (!which) return mask >> base & 1 ? base : 0xffffffffu;
    for (int bit = (int)base; bit >= 0 && bit < 32; bit += step)
        if ((mask >> bit & 1) && !--left) return (unsigned)bit;
    return 0xffffffffu;
}

/* ---- dot products ---- */

static inline int __dp4a(char4 a, char4 b, int c)
{
    return (int)((unsigned)c + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w));
}
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c)
{
    return c + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
static inline int __dp2a_lo(short2 a, char4 b, int c) { return (int)((unsigned)c + (unsigned)(a.x * b.x + a.y * b.y)); }
static inline int __dp2a_hi(short2 a, char4 b, int c) { return (int)((unsigned)c + (unsigned)(a.x * b.z + a.y * b.w)); }
static inline unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) { return c + (unsigned)a.x * b.x + (unsigned)a.y * b.y; }
static inline unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) { return c + (unsigned)a.x * b.z + (unsigned)a.y * b.w; }
static inline int __dp2a_lo(int a, int b, int c)
{
    return (int)((unsigned)c + (unsigned)((int16_t)a * (int8_t)b + (int16_t)(a >> 16) * (int8_t)(b >> 8)));
}
static inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff); }
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }

/* ---- words of several numbers ---- */

namespace __kolo
{

/** f of each part of the words, which are numbers of type T; its result is kept modulo the part's size. */
template <class T, class F, class... W> inline unsigned in_parts(F f, W... words)
{
    constexpr unsigned bits = 8 * sizeof(T);
    unsigned result = 0;

    for (unsigned at = 0; at < 32; at += bits) result |= (unsigned)(std::make_unsigned_t<T>)f((int)(T)(words >> at)...) << at;
    return result;
}

/** The sum of f of each part. */
template <class T, class F> inline unsigned sum_of_parts(F f, unsigned a, unsigned b)
{
    unsigned sum = 0;

    for (unsigned at = 0; at < 32; at += 8 * sizeof(T)) sum += (unsigned)f((int)(T)(a >> at), (int)(T)(b >> at));
    return sum;
}

template <class T> inline int clamp_to(int x)
{
    constexpr int least = std::is_signed_v<T> ? -(1 << (8 * sizeof(T) - 1)) : 0,
                  most = std::is_signed_v<T> ? (1 << (8 * sizeof(T) - 1)) - 1 : (1 << (8 * sizeof(T))) - 1;

    return x < least ? least : x > most ? most : x;
}

} // namespace __kolo

#define KOLO_CUDA_ONE(name, type, result) \
    static inline unsigned name(unsigned x) { return __kolo::in_parts<type>([](int a) { return result; }, x); }
#define KOLO_CUDA_TWO(name, type, result) \
    static inline unsigned name(unsigned x, unsigned y) { return __kolo::in_parts<type>([](int a, int b) { return result; }, x, y); }
#define KOLO_CUDA_SUM(name, type, result) \
    static inline unsigned name(unsigned x, unsigned y) { return __kolo::sum_of_parts<type>([](int a, int b) { return result; }, x, y); }
#define KOLO_CUDA_COMPARE(name, parts, sign, type, is) \
    KOLO_CUDA_TWO(__vcmp##name##sign##parts, type, -(a is b)) \
    KOLO_CUDA_TWO(__vset##name##sign##parts, type, a is b)
#define KOLO_CUDA_ORDER(parts, sign, type) \
    KOLO_CUDA_COMPARE(ge, parts, sign, type, >=) KOLO_CUDA_COMPARE(gt, parts, sign, type, >) \
    KOLO_CUDA_COMPARE(le, parts, sign, type, <=) KOLO_CUDA_COMPARE(lt, parts, sign, type, <) \
    KOLO_CUDA_TWO(__vmax##sign##parts, type, a > b ? a : b) KOLO_CUDA_TWO(__vmin##sign##parts, type, a < b ? a : b) \
    KOLO_CUDA_TWO(__vabsdiff##sign##parts, type, a > b ? a - b : b - a) KOLO_CUDA_SUM(__vsad##sign##parts, type, a > b ? a - b : b - a)
/* A rounded average of signed numbers is rounded up if the sum is not negative, else down. Source: PTX ISA, vavrg. */
#define KOLO_CUDA_PARTS(parts, stype, utype) \
    KOLO_CUDA_ORDER(parts, s, stype) KOLO_CUDA_ORDER(parts, u, utype) \
    KOLO_CUDA_COMPARE(eq, parts, , utype, ==) KOLO_CUDA_COMPARE(ne, parts, , utype, !=) \
    KOLO_CUDA_TWO(__vadd##parts, utype, a + b) KOLO_CUDA_TWO(__vsub##parts, utype, a - b) \
    KOLO_CUDA_TWO(__vaddss##parts, stype, __kolo::clamp_to<stype>(a + b)) KOLO_CUDA_TWO(__vaddus##parts, utype, __kolo::clamp_to<utype>(a + b)) \
    KOLO_CUDA_TWO(__vsubss##parts, stype, __kolo::clamp_to<stype>(a - b)) KOLO_CUDA_TWO(__vsubus##parts, utype, __kolo::clamp_to<utype>(a - b)) \
    KOLO_CUDA_TWO(__vavgs##parts, stype, (a + b + (a + b >= 0)) >> 1) KOLO_CUDA_TWO(__vavgu##parts, utype, (a + b + 1) >> 1) \
    KOLO_CUDA_TWO(__vhaddu##parts, utype, (a + b) >> 1) \
    KOLO_CUDA_ONE(__vabs##parts, stype, a < 0 ? -a : a) KOLO_CUDA_ONE(__vabsss##parts, stype, __kolo::clamp_to<stype>(a < 0 ? -a : a)) \
    KOLO_CUDA_ONE(__vneg##parts, stype, -a) KOLO_CUDA_ONE(__vnegss##parts, stype, __kolo::clamp_to<stype>(-a))
KOLO_CUDA_PARTS(2, int16_t, uint16_t)
KOLO_CUDA_PARTS(4, int8_t, uint8_t)
#undef KOLO_CUDA_PARTS
#undef KOLO_CUDA_ORDER
#undef KOLO_CUDA_COMPARE
#undef KOLO_CUDA_SUM
#undef KOLO_CUDA_TWO
#undef KOLO_CUDA_ONE

/* ---- smaller and larger of sums, of three, and not below 0: of words, and of their halves ---- */

namespace __kolo
{

template <class T> inline T least(T a, T b) { return b < a ? b : a; }
template <class T> inline T most(T a, T b) { return a < b ? b : a; }

/** Of one number or of halves: `f` of numbers of type T. */
template <class T, class R, class F, class... W> inline R each(F f, W... words)
{
    if constexpr (sizeof(T) == sizeof(R)) return (R)f((T)words...);
    else return (R)in_parts<T>([&](auto... part) { return (int)f((T)part...); }, words...);
}

template <class T, class R, class F> inline R chosen(F first, R a, R b, bool *hi, bool *lo)
{
    *lo = first((T)a, (T)b);
    *hi = first((T)(a >> 4 * sizeof(R)), (T)(b >> 4 * sizeof(R)));
    return each<T, R>([&](T x, T y) { return first(x, y) ? x : y; }, a, b);
}

} // namespace __kolo

#define KOLO_CUDA_VI(kind, which, ending, type, word, floor) \
    static inline word __vi##kind##3_##ending(word a, word b, word c) { return __kolo::each<type, word>([](type x, type y, type z) { return floor(__kolo::which(__kolo::which(x, y), z)); }, a, b, c); } \
    static inline word __viadd##kind##_##ending(word a, word b, word c) { return __kolo::each<type, word>([](type x, type y, type z) { return floor(__kolo::which((type)((unsigned)x + (unsigned)y), z)); }, a, b, c); }
#define KOLO_CUDA_VI_RELU(kind, which, ending, type, word, floor) \
    KOLO_CUDA_VI(kind, which, ending##_relu, type, word, floor) \
    static inline word __vi##kind##_##ending##_relu(word a, word b) { return __kolo::each<type, word>([](type x, type y) { return floor(__kolo::which(x, y)); }, a, b); }
#define KOLO_CUDA_ANY(x)      (x)
#define KOLO_CUDA_POSITIVE(x) __kolo::most((x), (decltype(x))0)
#define KOLO_CUDA_VI_ALL(kind, which) \
    KOLO_CUDA_VI(kind, which, s32, int, int, KOLO_CUDA_ANY) KOLO_CUDA_VI(kind, which, u32, unsigned, unsigned, KOLO_CUDA_ANY) \
    KOLO_CUDA_VI(kind, which, s16x2, int16_t, unsigned, KOLO_CUDA_ANY) KOLO_CUDA_VI(kind, which, u16x2, uint16_t, unsigned, KOLO_CUDA_ANY) \
    KOLO_CUDA_VI_RELU(kind, which, s32, int, int, KOLO_CUDA_POSITIVE) KOLO_CUDA_VI_RELU(kind, which, s16x2, int16_t, unsigned, KOLO_CUDA_POSITIVE)
KOLO_CUDA_VI_ALL(max, most)
KOLO_CUDA_VI_ALL(min, least)
#define KOLO_CUDA_VIB(kind, is) \
    static inline int __vib##kind##_s32(int a, int b, bool *first) { *first = a is b; return *first ? a : b; } \
    static inline unsigned __vib##kind##_u32(unsigned a, unsigned b, bool *first) { *first = a is b; return *first ? a : b; } \
    static inline unsigned __vib##kind##_s16x2(unsigned a, unsigned b, bool *hi, bool *lo) { return __kolo::chosen<int16_t>([](int x, int y) { return x is y; }, a, b, hi, lo); } \
    static inline unsigned __vib##kind##_u16x2(unsigned a, unsigned b, bool *hi, bool *lo) { return __kolo::chosen<uint16_t>([](int x, int y) { return x is y; }, a, b, hi, lo); }
KOLO_CUDA_VIB(max, >=)
KOLO_CUDA_VIB(min, <=)
#undef KOLO_CUDA_VIB
#undef KOLO_CUDA_VI_ALL
#undef KOLO_CUDA_POSITIVE
#undef KOLO_CUDA_ANY
#undef KOLO_CUDA_VI_RELU
#undef KOLO_CUDA_VI

/* clang-format on */

#endif
