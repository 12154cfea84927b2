/* SPDX-License-Identifier: Apache-2.0 */
/**
 * generators.h - the generators of random bits that curand_kernel.h and libcurand share: XORWOW, Philox4x32-10, MRG32k3a.
 *
 * A seed gives a sequence, which has subsequences of 2^67, 2^66 and 2^76 numbers. Seeds, steps and subsequences are as in cuRAND:
 * the same seed, subsequence and offset give the same bits as there.
 * Source:  Marsaglia, "Xorshift RNGs", 2003; Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011; L'Ecuyer, "Good
 * parameters and implementations for combined multiple recursive random number generators", 1999; the cuRAND guide.
 */
#ifndef KOLO_CUDA_GENERATORS_H
#define KOLO_CUDA_GENERATORS_H

#include <math.h>
#include <stdint.h>

struct curandStateXORWOW {
    unsigned int d, v[5];
    int boxmuller_flag, boxmuller_flag_double; /* is there another normal number? */
    float boxmuller_extra;
    double boxmuller_extra_double;
};

struct curandStatePhilox4_32_10 {
    unsigned int ctr[4], output[4], key[2];
    unsigned int STATE; /* numbers of `output` that have been used */
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};

struct curandStateMRG32k3a {
    unsigned int s1[3], s2[3];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};

/* ---- XORWOW ---- */

static inline void kolo_xorwow_shift(uint32_t v[5])
{
    uint32_t t = v[0] ^ (v[0] >> 2);

    v[0] = v[1];
    v[1] = v[2];
    v[2] = v[3];
    v[3] = v[4];
    v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
}

static inline uint32_t kolo_xorwow_next(struct curandStateXORWOW *s)
{
    kolo_xorwow_shift(s->v);
    s->d += 362437;
    return s->v[4] + s->d;
}

/* The shifts 2^k times. */
static inline void kolo_xorwow_jump(uint32_t v[5], unsigned k)
{
    static const uint32_t jumps[][5] = {
#include "xorwow_jumps.inc"
    };
    uint32_t sum[5] = {0, 0, 0, 0, 0};

    for (unsigned i = 0; i < 160; i++) {
        uint32_t taken = 0u - (jumps[k][i / 32] >> i % 32 & 1);

        for (unsigned j = 0; j < 5; j++) sum[j] ^= v[j] & taken;
        kolo_xorwow_shift(v);
    }
    for (unsigned j = 0; j < 5; j++) v[j] = sum[j];
}

static inline void kolo_xorwow_skip(struct curandStateXORWOW *s, unsigned long long n)
{
    s->d += 362437u * (uint32_t)n;
    for (unsigned few = (unsigned)(n & 255); few; few--) kolo_xorwow_shift(s->v);
    for (unsigned k = 8; k < 64; k++)
        if (n >> k & 1) kolo_xorwow_jump(s->v, k);
}

/* d has its old value after 2^67 numbers. */
static inline void kolo_xorwow_skip_subsequences(struct curandStateXORWOW *s, unsigned long long n)
{
    for (unsigned k = 0; k < 64; k++)
        if (n >> k & 1) kolo_xorwow_jump(s->v, 67 + k);
}

static inline void kolo_xorwow_init(struct curandStateXORWOW *s, unsigned long long seed,
                                    unsigned long long subsequence, unsigned long long offset)
{
    uint32_t low = ((uint32_t)seed ^ 0xaad26b49u) * 1099087573u,
             high = ((uint32_t)(seed >> 32) ^ 0xf7dcefddu) * 2591861531u;

    s->d = 6615241u + high + low;
    s->v[0] = 123456789u + low;
    s->v[1] = 362436069u ^ low;
    s->v[2] = 521288629u + high;
    s->v[3] = 88675123u ^ high;
    s->v[4] = 5783321u + low;
    s->boxmuller_flag = s->boxmuller_flag_double = 0;
    s->boxmuller_extra = 0;
    s->boxmuller_extra_double = 0;
    kolo_xorwow_skip_subsequences(s, subsequence);
    kolo_xorwow_skip(s, offset);
}

/* ---- Philox ---- */

static inline void kolo_philox_compute(struct curandStatePhilox4_32_10 *s)
{
    uint32_t c0 = s->ctr[0], c1 = s->ctr[1], c2 = s->ctr[2], c3 = s->ctr[3], k0 = s->key[0], k1 = s->key[1];

    for (unsigned round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    s->output[0] = c0;
    s->output[1] = c1;
    s->output[2] = c2;
    s->output[3] = c3;
}

/* Add n to two words of the counter; the carry goes on to the end of it. */
static inline void kolo_philox_count(struct curandStatePhilox4_32_10 *s, unsigned word, unsigned long long n)
{
    uint64_t low = s->ctr[word] | (uint64_t)s->ctr[word + 1] << 32, sum = low + n;

    s->ctr[word] = (uint32_t)sum;
    s->ctr[word + 1] = (uint32_t)(sum >> 32);
    if (sum < low && word == 0 && ++s->ctr[2] == 0) s->ctr[3]++;
}

static inline uint32_t kolo_philox_next(struct curandStatePhilox4_32_10 *s)
{
    uint32_t value = s->output[s->STATE++ & 3];

    if (s->STATE == 4) {
        s->STATE = 0;
        kolo_philox_count(s, 0, 1);
        kolo_philox_compute(s);
    }
    return value;
}

static inline void kolo_philox_skip(struct curandStatePhilox4_32_10 *s, unsigned long long n)
{
    unsigned used = s->STATE + (unsigned)(n & 3);

    s->STATE = used & 3;
    kolo_philox_count(s, 0, n / 4 + used / 4);
    kolo_philox_compute(s);
}

static inline void kolo_philox_skip_subsequences(struct curandStatePhilox4_32_10 *s, unsigned long long n)
{
    kolo_philox_count(s, 2, n);
    kolo_philox_compute(s);
}

static inline void kolo_philox_init(struct curandStatePhilox4_32_10 *s, unsigned long long seed,
                                    unsigned long long subsequence, unsigned long long offset)
{
    for (unsigned i = 0; i < 4; i++) s->ctr[i] = 0;
    s->key[0] = (uint32_t)seed;
    s->key[1] = (uint32_t)(seed >> 32);
    s->STATE = 0;
    s->boxmuller_flag = s->boxmuller_flag_double = 0;
    s->boxmuller_extra = 0;
    s->boxmuller_extra_double = 0;
    kolo_philox_count(s, 2, subsequence);
    kolo_philox_skip(s, offset);
}

/* ---- MRG32k3a ---- */

#define KOLO_MRG_M1 4294967087u
#define KOLO_MRG_M2 4294944443u

/* 1 to M1: of the interval (0, M1]. */
static inline uint32_t kolo_mrg_next(struct curandStateMRG32k3a *s)
{
    uint64_t plus1 = (uint64_t)1403580u * s->s1[1], minus1 = (uint64_t)810728u * s->s1[0];
    uint64_t plus2 = (uint64_t)527612u * s->s2[2], minus2 = (uint64_t)1370589u * s->s2[0];
    uint32_t p1 = (uint32_t)((plus1 + (uint64_t)KOLO_MRG_M1 * 810728u - minus1) % KOLO_MRG_M1);
    uint32_t p2 = (uint32_t)((plus2 + (uint64_t)KOLO_MRG_M2 * 1370589u - minus2) % KOLO_MRG_M2);

    s->s1[0] = s->s1[1];
    s->s1[1] = s->s1[2];
    s->s1[2] = p1;
    s->s2[0] = s->s2[1];
    s->s2[1] = s->s2[2];
    s->s2[2] = p2;
    return p1 > p2 ? p1 - p2 : p1 - p2 + KOLO_MRG_M1;
}

static inline void kolo_mrg_square(uint32_t a[3][3], uint32_t m)
{
    uint32_t product[3][3];

    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++) {
            uint64_t sum = 0;

            for (unsigned k = 0; k < 3; k++) sum += (uint64_t)a[i][k] * a[k][j] % m;
            product[i][j] = (uint32_t)(sum % m);
        }
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++) a[i][j] = product[i][j];
}

/* a^n put before the vector. */
static inline void kolo_mrg_apply(const uint32_t matrix[3][3], uint32_t v[3], uint32_t m, unsigned long long n)
{
    uint32_t a[3][3];

    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++) a[i][j] = matrix[i][j];
    for (; n; n >>= 1) {
        uint64_t sum[3] = {0, 0, 0};

        if (n & 1) {
            for (unsigned i = 0; i < 3; i++)
                for (unsigned k = 0; k < 3; k++) sum[i] += (uint64_t)a[i][k] * v[k] % m;
            for (unsigned i = 0; i < 3; i++) v[i] = (uint32_t)(sum[i] % m);
        }
        if (n > 1) kolo_mrg_square(a, m);
    }
}

static inline void kolo_mrg_skip(struct curandStateMRG32k3a *s, unsigned long long n)
{
    static const uint32_t a1[3][3] = {{0, 1, 0}, {0, 0, 1}, {KOLO_MRG_M1 - 810728u, 1403580u, 0}};
    static const uint32_t a2[3][3] = {{0, 1, 0}, {0, 0, 1}, {KOLO_MRG_M2 - 1370589u, 0, 527612u}};

    kolo_mrg_apply(a1, s->s1, KOLO_MRG_M1, n);
    kolo_mrg_apply(a2, s->s2, KOLO_MRG_M2, n);
}

/* Subsequences of 2^76 numbers. */
static inline void kolo_mrg_skip_subsequences(struct curandStateMRG32k3a *s, unsigned long long n)
{
    static const uint32_t a1[3][3] = {{82758667u, 1871391091u, 4127413238u},
                                      {3672831523u, 69195019u, 1871391091u},
                                      {3672091415u, 3528743235u, 69195019u}};
    static const uint32_t a2[3][3] = {{1511326704u, 3759209742u, 1610795712u},
                                      {4292754251u, 1511326704u, 3889917532u},
                                      {3859662829u, 4292754251u, 3708466080u}};

    kolo_mrg_apply(a1, s->s1, KOLO_MRG_M1, n & ((1ull << 51) - 1));
    kolo_mrg_apply(a2, s->s2, KOLO_MRG_M2, n & ((1ull << 51) - 1));
}

/* Sequences of 2^127 numbers. */
static inline void kolo_mrg_skip_sequences(struct curandStateMRG32k3a *s, unsigned long long n)
{
    static const uint32_t a1[3][3] = {{2427906178u, 3580155704u, 949770784u},
                                      {226153695u, 1230515664u, 3580155704u},
                                      {1988835001u, 986791581u, 1230515664u}};
    static const uint32_t a2[3][3] = {{1464411153u, 277697599u, 1610723613u},
                                      {32183930u, 1464411153u, 1022607788u},
                                      {2824425944u, 32183930u, 2093834863u}};

    kolo_mrg_apply(a1, s->s1, KOLO_MRG_M1, n);
    kolo_mrg_apply(a2, s->s2, KOLO_MRG_M2, n);
}

static inline void kolo_mrg_init(struct curandStateMRG32k3a *s, unsigned long long seed, unsigned long long subsequence,
                                 unsigned long long offset)
{
    uint64_t x1 = (uint32_t)seed ^ 0x55555555u, x2 = (uint32_t)(seed >> 32) ^ 0xAAAAAAAAu;

    for (unsigned i = 0; i < 3; i++) {
        s->s1[i] = seed ? (uint32_t)((i == 1 ? x2 : x1) * 12345u % KOLO_MRG_M1) : 12345u;
        s->s2[i] = seed ? (uint32_t)((i == 1 ? x1 : x2) * 12345u % KOLO_MRG_M2) : 12345u;
    }
    s->boxmuller_flag = s->boxmuller_flag_double = 0;
    s->boxmuller_extra = 0;
    s->boxmuller_extra_double = 0;
    kolo_mrg_skip_subsequences(s, subsequence);
    kolo_mrg_skip(s, offset);
}

/* ---- numbers of bits ---- */

static inline uint32_t kolo_mrg_bits(uint32_t value)
{
    return (uint32_t)(value * 1.000000048662);
}

static inline double kolo_mrg_uniform(struct curandStateMRG32k3a *s)
{
    return kolo_mrg_next(s) * 2.3283065498378288e-10;
}

static inline float kolo_uniform(uint32_t bits)
{
    return (float)bits * 2.3283064e-10f + 2.3283064e-10f / 2.0f;
}

static inline double kolo_uniform_double_32(uint32_t bits)
{
    return bits * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}

static inline double kolo_uniform_double(uint32_t low, uint32_t high)
{
    uint64_t bits = low ^ (uint64_t)high << 21;

    return (double)bits * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}

/* Two normal numbers of a uniform one and an angle, in the double form in units of pi. */
static inline void kolo_box_muller_of(float uniform, float angle, float *a, float *b)
{
    float length = sqrtf(-2.0f * logf(uniform));

    *a = sinf(angle) * length;
    *b = cosf(angle) * length;
}

static inline void kolo_box_muller_double_of(double uniform, double angle, double *a, double *b)
{
    double length = sqrt(-2.0 * log(uniform));

    *a = sin(angle * 3.1415926535897932) * length;
    *b = cos(angle * 3.1415926535897932) * length;
}

static inline void kolo_box_muller(uint32_t x, uint32_t y, float *a, float *b)
{
    const float turn = 2.3283064e-10f * 6.2831855f;

    kolo_box_muller_of(kolo_uniform(x), (float)y * turn + turn / 2, a, b);
}

static inline void kolo_box_muller_double(const uint32_t bits[4], double *a, double *b)
{
    kolo_box_muller_double_of(kolo_uniform_double(bits[0], bits[1]), 2.0 * kolo_uniform_double(bits[2], bits[3]), a, b);
}

#endif
