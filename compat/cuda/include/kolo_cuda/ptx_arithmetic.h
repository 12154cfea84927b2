/* SPDX-License-Identifier: Apache-2.0 */
/** ptx_arithmetic.h - PTX that computes: T is the instruction's type. Source of the meanings: PTX ISA. */
#ifndef KOLO_CUDA_PTX_ARITHMETIC_H
#define KOLO_CUDA_PTX_ARITHMETIC_H

#pragma GCC system_header

#include "arithmetic.h"

namespace __kolo
{
namespace ptx
{

template <class T> constexpr bool is_real = std::is_floating_point<T>::value;
template <class T> constexpr bool is_signed = std::is_signed<T>::value;

template <class T, bool Real = is_real<T>> struct unsigned_type {
    using type = std::make_unsigned_t<T>;
};
template <class T> struct unsigned_type<T, true> {
    using type = T;
};
template <bool Real> struct unsigned_type<bool, Real> {
    using type = bool;
};
/** Sums of these wrap; real numbers stay as they are. */
template <class T> using wrapping = typename unsigned_type<T>::type;

template <class T>
using wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<is_signed<T>, int32_t, uint32_t>,
                                std::conditional_t<sizeof(T) == 4, std::conditional_t<is_signed<T>, int64_t, uint64_t>,
                                                   std::conditional_t<is_signed<T>, __int128, unsigned __int128>>>;

/** Numbers too small for their exponent become zero (.ftz); other types stay. */
template <class T> inline T flushed(T x)
{
    if constexpr (std::is_same<T, float>::value)
        return x != 0.0f && std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
    else
        return x;
}

/* clang-format off */
template <class T> inline T add(T a, T b) { return (T)((wrapping<T>)a + (wrapping<T>)b); }
template <class T> inline T subtract(T a, T b) { return (T)((wrapping<T>)a - (wrapping<T>)b); }
template <class T> inline T multiply_low(T a, T b) { if constexpr (is_real<T>) return a * b; else return (T)((uint64_t)a * (uint64_t)b); }
template <class T> inline T multiply_high(T a, T b) { return (T)((wide<T>)a * (wide<T>)b >> 8 * sizeof(T)); }
template <class T> inline wide<T> multiply_wide(T a, T b) { return (wide<T>)a * (wide<T>)b; }
template <class T> inline T multiply_low_add(T a, T b, T c) { return add<T>(multiply_low<T>(a, b), c); }
template <class T> inline T multiply_high_add(T a, T b, T c) { return add<T>(multiply_high<T>(a, b), c); }
template <class T> inline wide<T> multiply_wide_add(T a, T b, wide<T> c) { return add<wide<T>>(multiply_wide<T>(a, b), c); }
template <class T> inline T low24(T a) { return is_signed<T> ? (T)((int32_t)((uint32_t)a << 8) >> 8) : (T)((uint32_t)a & 0xffffffU); }
template <class T> inline T multiply24_low(T a, T b) { return multiply_low<T>(low24<T>(a), low24<T>(b)); }
template <class T> inline T multiply24_low_add(T a, T b, T c) { return add<T>(multiply24_low<T>(a, b), c); }
template <class T> inline T fused(T a, T b, T c) { return std::fma(a, b, c); }
template <class T> inline T limit(int64_t x) { return x < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : x > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max() : (T)x; }
template <class T> inline T unit(T x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
template <class T> inline T add_saturated(T a, T b) { if constexpr (is_real<T>) return unit<T>(a + b); else return limit<T>((int64_t)a + b); }
template <class T> inline T subtract_saturated(T a, T b) { if constexpr (is_real<T>) return unit<T>(a - b); else return limit<T>((int64_t)a - b); }
template <class T> inline T multiply_saturated(T a, T b) { return unit<T>(a * b); }
/* A division by zero has all bits set, its remainder is the dividend. */
template <class T> inline T divide(T a, T b) { if constexpr (is_real<T>) return a / b; else return b == 0 ? (T)-1 : is_signed<T> && b == (T)-1 ? subtract<T>(0, a) : (T)(a / b); }
template <class T> inline T remainder(T a, T b) { return b == 0 ? a : is_signed<T> && b == (T)-1 ? 0 : (T)(a % b); }
template <class T> inline T negative(T a) { if constexpr (is_real<T>) return -a; else return subtract<T>(0, a); }
template <class T> inline T absolute(T a) { if constexpr (is_real<T>) return std::fabs(a); else return a < 0 ? negative<T>(a) : a; }
template <class T> inline T minimum(T a, T b) { if constexpr (is_real<T>) return std::fmin(a, b); else return a < b ? a : b; }
template <class T> inline T maximum(T a, T b) { if constexpr (is_real<T>) return std::fmax(a, b); else return a > b ? a : b; }
template <class T> inline T sum_of_difference(T a, T b, T c) { return add<T>(c, a < b ? subtract<T>(b, a) : subtract<T>(a, b)); }
template <class T> inline T reciprocal(T a) { return (T)1 / a; }
template <class T> inline T square_root(T a) { return std::sqrt(a); }
template <class T> inline T reciprocal_root(T a) { return (T)(1.0 / std::sqrt((double)a)); }
template <class T> inline T sine(T a) { return std::sin(a); }
template <class T> inline T cosine(T a) { return std::cos(a); }
template <class T> inline T logarithm(T a) { return std::log2(a); }
template <class T> inline T exponential(T a) { return std::exp2(a); }
template <class T> inline T hyperbolic_tangent(T a) { return std::tanh(a); }
template <class T> inline T copy_sign(T sign, T magnitude) { return std::copysign(magnitude, sign); }

/* ---- carries: `carry` comes from the instruction before and goes to the next one. A borrow is a carry of 1 ---- */

template <class T> inline T add_with_carry(T a, T b, uint32_t &carry)
{
    using U = wrapping<T>;
    U sum = (U)a + (U)b, all = sum + (U)carry;

    carry = sum < (U)a || all < sum;
    return (T)all;
}

template <class T> inline T subtract_with_carry(T a, T b, uint32_t &borrow)
{
    using U = wrapping<T>;
    U difference = (U)a - (U)b, all = difference - (U)borrow;

    borrow = (U)a < (U)b || difference < (U)borrow;
    return (T)all;
}

template <class T> inline T add_carry(T a, T b, uint32_t &carry) { carry = 0; return add_with_carry<T>(a, b, carry); }
template <class T> inline T add_with_carry_only(T a, T b, uint32_t carry) { return add_with_carry<T>(a, b, carry); }
template <class T> inline T subtract_carry(T a, T b, uint32_t &carry) { carry = 0; return subtract_with_carry<T>(a, b, carry); }
template <class T> inline T subtract_with_carry_only(T a, T b, uint32_t carry) { return subtract_with_carry<T>(a, b, carry); }
template <class T> inline T multiply_low_add_carry(T a, T b, T c, uint32_t &carry) { return add_carry<T>(multiply_low<T>(a, b), c, carry); }
template <class T> inline T multiply_high_add_carry(T a, T b, T c, uint32_t &carry) { return add_carry<T>(multiply_high<T>(a, b), c, carry); }
template <class T> inline T multiply_low_add_with_carry(T a, T b, T c, uint32_t &carry) { return add_with_carry<T>(multiply_low<T>(a, b), c, carry); }
template <class T> inline T multiply_high_add_with_carry(T a, T b, T c, uint32_t &carry) { return add_with_carry<T>(multiply_high<T>(a, b), c, carry); }
template <class T> inline T multiply_low_add_with_carry_only(T a, T b, T c, uint32_t carry) { return add_with_carry<T>(multiply_low<T>(a, b), c, carry); }
template <class T> inline T multiply_high_add_with_carry_only(T a, T b, T c, uint32_t carry) { return add_with_carry<T>(multiply_high<T>(a, b), c, carry); }

/* ---- bits ---- */

template <class T> inline T bits_and(T a, T b) { return (T)(a & b); }
template <class T> inline T bits_or(T a, T b) { return (T)(a | b); }
template <class T> inline T bits_xor(T a, T b) { return (T)(a ^ b); }
template <class T> inline T bits_not(T a) { if constexpr (std::is_same<T, bool>::value) return !a; else return (T)~a; }
template <class T> inline T logical_not(T a) { return (T)(a == 0); }
template <class T> inline T shift_left(T a, uint32_t n) { return n >= 8 * sizeof(T) ? 0 : (T)((wrapping<T>)a << n); }
template <class T> inline T shift_right(T a, uint32_t n) { constexpr uint32_t all = 8 * sizeof(T); return n < all ? (T)(a >> n) : is_signed<T> ? (T)(a >> (all - 1)) : 0; }
template <class T> inline uint32_t population(T a) { return (uint32_t)__builtin_popcountll(a); }
template <class T> inline uint32_t leading_zeros(T a) { return a ? (uint32_t)__builtin_clzll(a) - (64 - 8 * sizeof(T)) : 8 * sizeof(T); }
/* The highest bit that is not a sign, from below. */
template <class T> inline uint32_t find_bit(T a) { wrapping<T> u = (wrapping<T>)(a < 0 ? ~a : a); return u ? (uint32_t)(8 * sizeof(T)) - 1 - leading_zeros(u) : 0xffffffffU; }
template <class T> inline uint32_t find_shift(T a) { uint32_t bit = find_bit(a); return bit == 0xffffffffU ? bit : (uint32_t)(8 * sizeof(T)) - 1 - bit; }
template <class T> inline T reverse_bits(T a) { if constexpr (sizeof(T) == 8) return (T)__brevll(a); else return (T)__brev(a); }

template <class T> inline T extract_field(T a, uint32_t at, uint32_t bits)
{
    constexpr uint32_t all = 8 * sizeof(T);
    uint32_t top;

    at &= 255;
    bits &= 255;
    if (!bits) return 0;
    top = at + bits - 1 < all ? at + bits - 1 : all - 1; /* the sign is the field's highest bit, or the number's */
    if (at >= all) return is_signed<T> && a < 0 ? (T)-1 : 0;
    return (T)((T)((wrapping<T>)a << (all - 1 - top)) >> (all - 1 - top + at));
}

template <class T> inline T insert_field(T field, T into, uint32_t at, uint32_t bits)
{
    constexpr uint32_t all = 8 * sizeof(T);
    T mask;

    at &= 255;
    bits &= 255;
    mask = bits >= all ? (T)~(T)0 : (T)(((T)1 << bits) - 1);
    return at >= all ? into : (T)((into & ~(T)(mask << at)) | (T)((field & mask) << at));
}

template <class T> inline T mask_clamped(uint32_t at, uint32_t bits) { return at >= 32 ? 0 : (T)(((bits >= 32 ? 0 : 1ULL << bits) - 1) << at); }
template <class T> inline T mask_wrapped(uint32_t at, uint32_t bits) { return mask_clamped<T>(at & 31, bits & 31); }
template <class T> inline T extend_clamped(T a, uint32_t bits) { return bits >= 32 ? a : extract_field<T>(a, 0, bits); }
template <class T> inline T funnel_left_wrap(T lo, T hi, uint32_t n) { return __funnelshift_l(lo, hi, n); }
template <class T> inline T funnel_right_wrap(T lo, T hi, uint32_t n) { return __funnelshift_r(lo, hi, n); }
template <class T> inline T funnel_left_clamp(T lo, T hi, uint32_t n) { return __funnelshift_lc(lo, hi, n); }
template <class T> inline T funnel_right_clamp(T lo, T hi, uint32_t n) { return __funnelshift_rc(lo, hi, n); }
template <class T> inline T permute(T a, T b, uint32_t select) { return __byte_perm(a, b, select); }

/* Bit i of `table` is the result for bits a, b, c with i = 4a + 2b + c. */
template <class T> inline T logic3(T a, T b, T c, uint32_t table)
{
    T result = 0;

    for (uint32_t i = 0; i < 8; i++)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

template <class T> inline T select(T a, T b, bool first) { return first ? a : b; }
template <class T, class S> inline T select_by_sign(T a, T b, S sign) { return sign >= 0 ? a : b; }

/* ---- comparisons: with a NaN those without u are false, those with u true ---- */

template <class T> inline bool unordered(T a, T b) { return a != a || b != b; }
template <class T> inline bool compare_eq(T a, T b) { return a == b; }
template <class T> inline bool compare_ne(T a, T b) { return a != b && !unordered(a, b); }
template <class T> inline bool compare_lt(T a, T b) { return a < b; }
template <class T> inline bool compare_le(T a, T b) { return a <= b; }
template <class T> inline bool compare_gt(T a, T b) { return a > b; }
template <class T> inline bool compare_ge(T a, T b) { return a >= b; }
template <class T> inline bool compare_lo(T a, T b) { return a < b; }
template <class T> inline bool compare_ls(T a, T b) { return a <= b; }
template <class T> inline bool compare_hi(T a, T b) { return a > b; }
template <class T> inline bool compare_hs(T a, T b) { return a >= b; }
template <class T> inline bool compare_equ(T a, T b) { return a == b || unordered(a, b); }
template <class T> inline bool compare_neu(T a, T b) { return a != b; }
template <class T> inline bool compare_ltu(T a, T b) { return a < b || unordered(a, b); }
template <class T> inline bool compare_leu(T a, T b) { return a <= b || unordered(a, b); }
template <class T> inline bool compare_gtu(T a, T b) { return a > b || unordered(a, b); }
template <class T> inline bool compare_geu(T a, T b) { return a >= b || unordered(a, b); }
template <class T> inline bool compare_num(T a, T b) { return !unordered(a, b); }
template <class T> inline bool compare_nan(T a, T b) { return unordered(a, b); }

/* ---- parts and conversions ---- */

/* The first part is the lowest. */
template <class T, class... P> inline T pack(P... parts)
{
    uint64_t bits = 0;
    unsigned at = 0;

    ((bits |= (uint64_t)parts << at, at += 8 * sizeof(P)), ...);
    return take<T>(take<std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>>(bits));
}

template <class P, class T> inline P part(T whole, unsigned n)
{
    uint64_t bits = 0;

    memcpy(&bits, &whole, sizeof whole);
    return (P)(bits >> n * 8 * sizeof(P));
}

template <class T> inline T round_nearest(T x) { return std::nearbyint(x); }
template <class T> inline T round_zero(T x) { return std::trunc(x); }
template <class T> inline T round_minus(T x) { return std::floor(x); }
template <class T> inline T round_plus(T x) { return std::ceil(x); }

/* Real numbers were rounded before they become integers. */
template <class To, class From> inline To convert(From x) { return cast<To>(x); }

template <class To, class From> inline To convert_saturated(From x)
{
    if constexpr (is_real<To>) {
        return unit<To>((To)x);
    } else if constexpr (is_real<From>) {
        return saturate<To>(x);
    } else {
        __int128 value = x, low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();

        return (To)(value < low ? low : value > high ? high : value);
    }
}
/* clang-format on */

} // namespace ptx
} // namespace __kolo

#endif
