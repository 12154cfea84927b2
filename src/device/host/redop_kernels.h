/* SPDX-License-Identifier: Apache-2.0 */
/**
 * redop_kernels.h - the kernels that compiler flags alone adapt to an instruction set. Included once by a file per
 * instruction set, which is compiled with those flags and names the resulting table: KL_REDOP_KERNELS. Contains
 * everything but the arithmetic of fp16 and fp8 (redop_smallfloat.c and redop_f16c.c).
 *
 * So that every instruction set yields the same bits, all choices are fixed: no contraction to fused multiply-add, a
 * NaN result is the positive quiet NaN (processors differ in the payload that survives), and -0 is less than +0.
 */
#include "device/host/redop_loops.h"

/* ---- values ---- */

static inline float quiet_f32(float x)
{
    return x == x ? x : kl_float_from_bits(0x7fc00000);
}

static inline double quiet_f64(double x)
{
    return x == x ? x : __builtin_nan("");
}

/* Both orders of comparison differ only for zeros of unlike sign: `and` clears the sign, `or` sets it. */
#define FLOAT_EXTREME(name, real, bits, less, join)                                                                    \
    static inline real name(real a, real b)                                                                            \
    {                                                                                                                  \
        const real one = a less b ? a : b, other = b less a ? b : a;                                                   \
        bits x, y;                                                                                                     \
        real joined;                                                                                                   \
                                                                                                                       \
        memcpy(&x, &one, sizeof x);                                                                                    \
        memcpy(&y, &other, sizeof y);                                                                                  \
        x = x join y;                                                                                                  \
        memcpy(&joined, &x, sizeof x);                                                                                 \
        return __builtin_isunordered(a, b) ? (real)__builtin_nan("") : joined;                                         \
    }
FLOAT_EXTREME(max_f32, float, uint32_t, >, &)
FLOAT_EXTREME(min_f32, float, uint32_t, <, |)
FLOAT_EXTREME(max_f64, double, uint64_t, >, &)
FLOAT_EXTREME(min_f64, double, uint64_t, <, |)

/* Small floats are ordered like integers, once the magnitude bits of negative ones are inverted. */
#define CODE_EXTREME(name, code, integer, magnitude, less)                                                             \
    static inline code name(code a, code b, code largest, code nan)                                                    \
    {                                                                                                                  \
        const integer x = (integer)(a ^ ((integer)a < 0 ? magnitude : 0));                                             \
        const integer y = (integer)(b ^ ((integer)b < 0 ? magnitude : 0));                                             \
        const bool ordered = (a & magnitude) <= largest && (b & magnitude) <= largest;                                 \
                                                                                                                       \
        return ordered ? (x less y ? a : b) : nan;                                                                     \
    }
CODE_EXTREME(max_code16, uint16_t, int16_t, INT16_MAX, >)
CODE_EXTREME(min_code16, uint16_t, int16_t, INT16_MAX, <)
CODE_EXTREME(max_code8, uint8_t, int8_t, INT8_MAX, >)
CODE_EXTREME(min_code8, uint8_t, int8_t, INT8_MAX, <)

/* ---- integers: unsigned arithmetic wraps and serves both signednesses ---- */

ARITHMETIC(u8, SAME, SAME)
ARITHMETIC(u32, SAME, SAME)
ARITHMETIC(u64, SAME, SAME)

#define INTEGER(type, real)                                                                                            \
    COMBINE(type##_max, type, a > b ? a : b)                                                                           \
    COMBINE(type##_min, type, a < b ? a : b)                                                                           \
    INTEGER_MEAN(type, real)
INTEGER(i8, float)
INTEGER(u8, float)
INTEGER(i32, double)
INTEGER(u32, double)
INTEGER(i64, int64_t)
INTEGER(u64, uint64_t)

/* ---- floating point ---- */

FLOAT(f32, SAME, quiet_f32, float, scale)
FLOAT(f64, SAME, quiet_f64, double, scale_wide)
FLOAT(bf16, kl_bf16_decode, kl_bf16_encode, float, scale)

COMBINE(f32_max, f32, max_f32(a, b))
COMBINE(f32_min, f32, min_f32(a, b))
COMBINE(f64_max, f64, max_f64(a, b))
COMBINE(f64_min, f64, min_f64(a, b))
COMBINE(f16_max, f16, max_code16(a, b, 0x7c00, 0x7e00))
COMBINE(f16_min, f16, min_code16(a, b, 0x7c00, 0x7e00))
COMBINE(bf16_max, bf16, max_code16(a, b, 0x7f80, 0x7fc0))
COMBINE(bf16_min, bf16, min_code16(a, b, 0x7f80, 0x7fc0))
COMBINE(e4m3_max, e4m3, max_code8(a, b, 0x7e, 0x7f))
COMBINE(e4m3_min, e4m3, min_code8(a, b, 0x7e, 0x7f))
COMBINE(e5m2_max, e5m2, max_code8(a, b, 0x7c, 0x7e))
COMBINE(e5m2_min, e5m2, min_code8(a, b, 0x7c, 0x7e))

/* ---- the table ---- */

#define EXTREMES_OF(type) [ncclMax] = {COMBINED_BY(type##_max)}, [ncclMin] = {COMBINED_BY(type##_min)}
#define INTEGER_ROW(type, bits)                                                                                        \
    {                                                                                                                  \
        [ncclSum] = {COMBINED_BY(bits##_sum)}, [ncclProd] = {COMBINED_BY(bits##_prod)},                                \
        [ncclAvg] = {.combine = bits##_sum, .last = type##_divide}, EXTREMES_OF(type)                                  \
    }

const struct kl_redop_kernels KL_REDOP_KERNELS[ncclNumTypes][ncclNumOps] = {
    [ncclInt8] = INTEGER_ROW(i8, u8),
    [ncclUint8] = INTEGER_ROW(u8, u8),
    [ncclInt32] = INTEGER_ROW(i32, u32),
    [ncclUint32] = INTEGER_ROW(u32, u32),
    [ncclInt64] = INTEGER_ROW(i64, u64),
    [ncclUint64] = INTEGER_ROW(u64, u64),
    [ncclFloat16] = {EXTREMES_OF(f16)},
    [ncclFloat32] = {ARITHMETIC_OF(f32), EXTREMES_OF(f32)},
    [ncclFloat64] = {ARITHMETIC_OF(f64), EXTREMES_OF(f64)},
    [ncclBfloat16] = {ARITHMETIC_OF(bf16), EXTREMES_OF(bf16)},
    [ncclFloat8e4m3] = {EXTREMES_OF(e4m3)},
    [ncclFloat8e5m2] = {EXTREMES_OF(e5m2)},
};
