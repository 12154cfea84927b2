/* SPDX-License-Identifier: Apache-2.0 */
/**
 * curand_kernel.h - cuRAND's generators in kernels: XORWOW, Philox4x32-10, MRG32k3a; uniform, normal, log-normal and Poisson numbers.
 *
 * Bits and uniform numbers are cuRAND's; normal numbers differ from a GPU's in the last bits, as logarithm and sine do. Poisson numbers
 * have the distribution, and not cuRAND's sequence. A state belongs to one thread at a time. MTGP32 and the Sobol generators are missing.
 */
#ifndef KOLO_CUDA_CURAND_KERNEL_H
#define KOLO_CUDA_CURAND_KERNEL_H

#pragma GCC system_header

#include "cuda_runtime.h"
#include "curand.h"
#include "kolo_cuda/generators.h"

#include <cmath>

typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

#define KOLO_CURAND static inline __host__ __device__

/* ---- bits ---- */

#define KOLO_CURAND_BITS(state_type, prefix)                                                                           \
    KOLO_CURAND void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,   \
                                 state_type *state)                                                                    \
    {                                                                                                                  \
        prefix##_init(state, seed, subsequence, offset);                                                               \
    }                                                                                                                  \
    KOLO_CURAND void skipahead(unsigned long long n, state_type *state)                                                \
    {                                                                                                                  \
        prefix##_skip(state, n);                                                                                       \
    }
KOLO_CURAND_BITS(curandStateXORWOW_t, kolo_xorwow)
KOLO_CURAND_BITS(curandStatePhilox4_32_10_t, kolo_philox)
KOLO_CURAND_BITS(curandStateMRG32k3a_t, kolo_mrg)
#undef KOLO_CURAND_BITS

KOLO_CURAND void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state)
{
    kolo_xorwow_skip_subsequences(state, n);
}

KOLO_CURAND void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state)
{
    kolo_philox_skip_subsequences(state, n);
}

KOLO_CURAND void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t *state)
{
    kolo_mrg_skip_sequences(state, n);
}

KOLO_CURAND void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t *state)
{
    kolo_mrg_skip_subsequences(state, n);
}

KOLO_CURAND unsigned int curand(curandStateXORWOW_t *state)
{
    return kolo_xorwow_next(state);
}

KOLO_CURAND unsigned int curand(curandStatePhilox4_32_10_t *state)
{
    return kolo_philox_next(state);
}

KOLO_CURAND unsigned int curand(curandStateMRG32k3a_t *state)
{
    return kolo_mrg_bits(kolo_mrg_next(state));
}

KOLO_CURAND uint4 curand4(curandStatePhilox4_32_10_t *state)
{
    uint4 four;

    four.x = curand(state);
    four.y = curand(state);
    four.z = curand(state);
    four.w = curand(state);
    return four;
}

/* ---- uniform: above 0, up to 1 ---- */

KOLO_CURAND float curand_uniform(curandStateXORWOW_t *state)
{
    return kolo_uniform(curand(state));
}

KOLO_CURAND float curand_uniform(curandStatePhilox4_32_10_t *state)
{
    return kolo_uniform(curand(state));
}

KOLO_CURAND float curand_uniform(curandStateMRG32k3a_t *state)
{
    return (float)kolo_mrg_uniform(state);
}

KOLO_CURAND float4 curand_uniform4(curandStatePhilox4_32_10_t *state)
{
    uint4 bits = curand4(state);

    return make_float4(kolo_uniform(bits.x), kolo_uniform(bits.y), kolo_uniform(bits.z), kolo_uniform(bits.w));
}

KOLO_CURAND double curand_uniform_double(curandStateXORWOW_t *state)
{
    unsigned int low = curand(state);

    return kolo_uniform_double(low, curand(state));
}

KOLO_CURAND double curand_uniform_double(curandStatePhilox4_32_10_t *state)
{
    return kolo_uniform_double_32(curand(state));
}

KOLO_CURAND double curand_uniform_double(curandStateMRG32k3a_t *state)
{
    return kolo_mrg_uniform(state);
}

KOLO_CURAND double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state)
{
    uint4 bits = curand4(state);

    return make_double2(kolo_uniform_double(bits.x, bits.y), kolo_uniform_double(bits.z, bits.w));
}

KOLO_CURAND double4 curand_uniform4_double(curandStatePhilox4_32_10_t *state)
{
    double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);

    return make_double4(a.x, a.y, b.x, b.y);
}

/* ---- normal: mean 0, deviation 1 ---- */

template <class State> KOLO_CURAND float2 curand_normal2(State *state)
{
    float2 pair;
    unsigned int x = curand(state);

    kolo_box_muller(x, curand(state), &pair.x, &pair.y);
    return pair;
}

KOLO_CURAND float2 curand_normal2(curandStateMRG32k3a_t *state)
{
    float2 pair;
    float u = curand_uniform(state);

    kolo_box_muller_of(u, curand_uniform(state) * 6.2831855f, &pair.x, &pair.y);
    return pair;
}

KOLO_CURAND float4 curand_normal4(curandStatePhilox4_32_10_t *state)
{
    float2 a = curand_normal2(state), b = curand_normal2(state);

    return make_float4(a.x, a.y, b.x, b.y);
}

template <class State> KOLO_CURAND double2 curand_normal2_double(State *state)
{
    double2 pair;
    unsigned int bits[4];

    for (unsigned int i = 0; i < 4; i++) bits[i] = curand(state);
    kolo_box_muller_double(bits, &pair.x, &pair.y);
    return pair;
}

KOLO_CURAND double2 curand_normal2_double(curandStateMRG32k3a_t *state)
{
    double2 pair;
    double u = kolo_mrg_uniform(state);

    kolo_box_muller_double_of(u, kolo_mrg_uniform(state) * 2.0, &pair.x, &pair.y);
    return pair;
}

KOLO_CURAND double4 curand_normal4_double(curandStatePhilox4_32_10_t *state)
{
    double2 a = curand_normal2_double(state), b = curand_normal2_double(state);

    return make_double4(a.x, a.y, b.x, b.y);
}

/* The second of a pair is kept for the next call. */
template <class State> KOLO_CURAND float curand_normal(State *state)
{
    if (state->boxmuller_flag != 1) {
        float2 pair = curand_normal2(state);

        state->boxmuller_extra = pair.y;
        state->boxmuller_flag = 1;
        return pair.x;
    }
    state->boxmuller_flag = 0;
    return state->boxmuller_extra;
}

template <class State> KOLO_CURAND double curand_normal_double(State *state)
{
    if (state->boxmuller_flag_double != 1) {
        double2 pair = curand_normal2_double(state);

        state->boxmuller_extra_double = pair.y;
        state->boxmuller_flag_double = 1;
        return pair.x;
    }
    state->boxmuller_flag_double = 0;
    return state->boxmuller_extra_double;
}

/* ---- log-normal: e to the power of a normal number ---- */

template <class State> KOLO_CURAND float curand_log_normal(State *state, float mean, float stddev)
{
    if (state->boxmuller_flag != 2) {
        float2 pair = curand_normal2(state);

        state->boxmuller_extra = expf(mean + stddev * pair.y);
        state->boxmuller_flag = 2;
        return expf(mean + stddev * pair.x);
    }
    state->boxmuller_flag = 0;
    return state->boxmuller_extra;
}

template <class State> KOLO_CURAND double curand_log_normal_double(State *state, double mean, double stddev)
{
    if (state->boxmuller_flag_double != 2) {
        double2 pair = curand_normal2_double(state);

        state->boxmuller_extra_double = exp(mean + stddev * pair.y);
        state->boxmuller_flag_double = 2;
        return exp(mean + stddev * pair.x);
    }
    state->boxmuller_flag_double = 0;
    return state->boxmuller_extra_double;
}

template <class State> KOLO_CURAND float2 curand_log_normal2(State *state, float mean, float stddev)
{
    float2 pair = curand_normal2(state);

    return make_float2(expf(mean + stddev * pair.x), expf(mean + stddev * pair.y));
}

template <class State> KOLO_CURAND double2 curand_log_normal2_double(State *state, double mean, double stddev)
{
    double2 pair = curand_normal2_double(state);

    return make_double2(exp(mean + stddev * pair.x), exp(mean + stddev * pair.y));
}

KOLO_CURAND float4 curand_log_normal4(curandStatePhilox4_32_10_t *state, float mean, float stddev)
{
    float2 a = curand_log_normal2(state, mean, stddev), b = curand_log_normal2(state, mean, stddev);

    return make_float4(a.x, a.y, b.x, b.y);
}

/* ---- Poisson ---- */

/* The product of uniform numbers, begun again where it would leave the range of a double. */
template <class State> KOLO_CURAND unsigned int curand_poisson(State *state, double lambda)
{
    enum { STEP = 500 };
    unsigned int events = 0;
    double product = 1, left = lambda;

    for (;;) {
        product *= curand_uniform(state);
        while (product < 1 && left > 0) {
            double step = left < STEP ? left : STEP;

            product *= exp(step);
            left -= step;
        }
        if (product <= 1) return events;
        events++;
    }
}

KOLO_CURAND uint4 curand_poisson4(curandStatePhilox4_32_10_t *state, double lambda)
{
    uint4 four;

    four.x = curand_poisson(state, lambda);
    four.y = curand_poisson(state, lambda);
    four.z = curand_poisson(state, lambda);
    four.w = curand_poisson(state, lambda);
    return four;
}

#undef KOLO_CURAND

#endif
