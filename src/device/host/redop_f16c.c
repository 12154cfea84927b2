/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic of fp16 and fp8 with AVX2 and the processor's own fp16 conversion (F16C), sixteen elements at a time.
 *
 * fp8 becomes fp16 by a shift, e4m3 as 2^-8 of its value, and is rounded twice: to fp16, then to its own type. That
 * equals rounding once, because fp16 keeps 2p + 2 bits for the p = 4 or 3 of fp8 (Figueroa, "When is double rounding
 * innocuous?", 1995); below the normal numbers, where that argument ends, all pairs have been tried.
 */
#include "device/host/redop_table.h"
#include "device/host/smallfloat.h"

#include <immintrin.h>

enum { LANES = 16 };

/* A format as sixteen 16-bit lanes of codes, and its conversion to fp16. */
struct format {
    size_t bytes;
    float unit; /* the value that fp16 1.0 stands for */
    __m256i (*load)(const void *from);
    void (*store)(void *to, __m256i codes);
    __m256i (*widen)(__m256i codes);
    __m256i (*narrow)(__m256i halves);
};

/* The codes, with `nan` where the fp16 value is not a number. */
static inline __m256i quiet(__m256i codes, __m256i halves, short nan)
{
    const __m256i magnitude = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));

    return _mm256_blendv_epi8(codes, _mm256_set1_epi16(nan), _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7c00)));
}

/* ---- fp16 ---- */

static inline __m256i load16(const void *from)
{
    return _mm256_loadu_si256(from);
}

static inline void store16(void *to, __m256i codes)
{
    _mm256_storeu_si256(to, codes);
}

static inline __m256i widen_f16(__m256i codes)
{
    return codes;
}

static inline __m256i narrow_f16(__m256i halves)
{
    return quiet(halves, halves, 0x7e00);
}

static const struct format f16 = {2, 1, load16, store16, widen_f16, narrow_f16};

/* ---- fp8 ---- */

static inline __m256i load8(const void *from)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(from));
}

static inline void store8(void *to, __m256i codes)
{
    _mm_storeu_si128(to, _mm_packus_epi16(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1)));
}

/* The magnitude moves up by 7 bits, the sign by 8; the code of 480 is the NaN. */
static inline __m256i widen_e4m3(__m256i codes)
{
    const __m256i sign = _mm256_and_si256(codes, _mm256_set1_epi16(0x80));
    const __m256i nan = _mm256_cmpeq_epi16(_mm256_xor_si256(codes, sign), _mm256_set1_epi16(0x7f));

    return _mm256_or_si256(_mm256_slli_epi16(_mm256_add_epi16(codes, sign), 7), _mm256_srli_epi16(nan, 1));
}

static inline __m256i widen_e5m2(__m256i codes)
{
    return _mm256_slli_epi16(codes, 8);
}

/* Drop `bits` of each magnitude, rounding to nearest even; `limit` is the largest finite magnitude. */
static inline __m256i narrow(__m256i halves, int bits, short limit, short nan)
{
    const __m256i one = _mm256_set1_epi16(1), below_half = _mm256_set1_epi16((short)((1 << (bits - 1)) - 1));
    const __m256i magnitude = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
    const __m256i bounded = _mm256_min_epi16(magnitude, _mm256_set1_epi16(limit));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(bounded, bits), one);
    const __m256i rounded = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(bounded, below_half), odd), bits);
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(halves, 8), _mm256_set1_epi16(0x80));

    return quiet(_mm256_or_si256(rounded, sign), halves, nan);
}

static inline __m256i narrow_e4m3(__m256i halves)
{
    return narrow(halves, 7, 0x3f00, 0x7f);
}

static inline __m256i narrow_e5m2(__m256i halves)
{
    return narrow(halves, 8, 0x7b00, 0x7e);
}

static const struct format e4m3 = {1, 256, load8, store8, widen_e4m3, narrow_e4m3};
static const struct format e5m2 = {1, 1, load8, store8, widen_e5m2, narrow_e5m2};

/* ---- steps: from codes to codes, rounded to the format ---- */

struct floats {
    __m256 low, high;
};

static inline struct floats read(const struct format f, __m256i codes)
{
    const __m256i halves = f.widen(codes);

    return (struct floats){_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                           _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}

static inline __m128i halves_of(__m256 x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline __m256i write(const struct format f, __m256 low, __m256 high)
{
    return f.narrow(_mm256_set_m128i(halves_of(high), halves_of(low)));
}

static inline __m256i sum(const struct format f, __m256i a, __m256i b, __m256 scale)
{
    const struct floats x = read(f, a), y = read(f, b);

    (void)scale;
    return write(f, x.low + y.low, x.high + y.high);
}

static inline __m256i prod(const struct format f, __m256i a, __m256i b, __m256 scale)
{
    const struct floats x = read(f, a), y = read(f, b);

    (void)scale;
    return write(f, x.low * y.low * f.unit, x.high * y.high * f.unit);
}

static inline __m256i scaled(const struct format f, __m256i a, __m256i b, __m256 scale)
{
    const struct floats y = read(f, b);

    (void)a;
    return write(f, y.low * scale, y.high * scale);
}

static inline __m256i add_scaled(const struct format f, __m256i a, __m256i b, __m256 scale)
{
    return sum(f, a, scaled(f, a, b, scale), scale);
}

/* ---- loops ---- */

typedef __m256i step_fn(const struct format f, __m256i a, __m256i b, __m256 scale);

static inline __attribute__((always_inline)) void each(const struct format f, step_fn *step, char *to, const char *a,
                                                       const char *b, size_t count, float scale)
{
    const __m256 scales = _mm256_set1_ps(scale);
    const size_t stride = LANES * f.bytes, whole = count / LANES * stride, rest = count % LANES * f.bytes;
    char x[2 * LANES] = {0}, y[2 * LANES] = {0};

    for (size_t i = 0; i < whole; i += stride) f.store(to + i, step(f, f.load(a + i), f.load(b + i), scales));
    if (!rest) return;
    memcpy(x, a + whole, rest);
    memcpy(y, b + whole, rest);
    f.store(x, step(f, f.load(x), f.load(y), scales));
    memcpy(to + whole, x, rest);
}

#define COMBINE(format, step)                                                                                          \
    static void format##_##step(const struct kl_redop *op, void *dst, const void *partial, const void *own,            \
                                size_t count)                                                                          \
    {                                                                                                                  \
        each(format, step, dst, partial, own, count, op->scale);                                                       \
    }
#define KERNELS(format)                                                                                                \
    COMBINE(format, sum)                                                                                               \
    COMBINE(format, prod)                                                                                              \
    COMBINE(format, add_scaled)                                                                                        \
    static void format##_scaled(const struct kl_redop *op, void *dst, const void *own, size_t count)                   \
    {                                                                                                                  \
        each(format, scaled, dst, own, own, count, op->scale);                                                         \
    }
KERNELS(f16)
KERNELS(e4m3)
KERNELS(e5m2)

#define ROW(format)                                                                                                    \
    {                                                                                                                  \
        [ncclSum] = {.combine = format##_sum}, [ncclProd] = {.combine = format##_prod},                                \
        [ncclAvg] = {.first = format##_scaled, .combine = format##_add_scaled},                                        \
    }

const struct kl_redop_kernels kl_redop_f16c[ncclNumTypes][ncclNumOps] = {
    [ncclFloat16] = ROW(f16),
    [ncclFloat8e4m3] = ROW(e4m3),
    [ncclFloat8e5m2] = ROW(e5m2),
};
