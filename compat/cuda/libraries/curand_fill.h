/* SPDX-License-Identifier: Apache-2.0 */
/**
 * curand_fill.h - the kernels of libcurand: they fill memory from a generator's state, which is in memory as well, so that a graph
 * that is launched again goes on with new numbers.
 */
#ifndef KL_CUDA_CURAND_FILL_H
#define KL_CUDA_CURAND_FILL_H

#include "compat/cuda/include/curand.h"
#include "compat/cuda/include/kolo_cuda/generators.h"

enum { KL_CURAND_LANES = 4096 };

enum kl_curand_kind {
    KL_CURAND_BITS,
    KL_CURAND_UNIFORM,
    KL_CURAND_UNIFORM_DOUBLE,
    KL_CURAND_NORMAL,
    KL_CURAND_NORMAL_DOUBLE,
    KL_CURAND_LOG_NORMAL,
    KL_CURAND_LOG_NORMAL_DOUBLE,
    KL_CURAND_POISSON
};

union kl_curand_lane {
    struct curandStateXORWOW xorwow;
    struct curandStatePhilox4_32_10 philox;
    struct curandStateMRG32k3a mrg;
};

/** Where a generator is: numbers and pairs of numbers that it has made, and its lanes' states (not of Philox). */
struct kl_curand_state {
    curandRngType_t type;
    unsigned long long seed, offset, position;
    union kl_curand_lane lane[KL_CURAND_LANES];
};

/** Begin with a seed, `offset` numbers behind its beginning, when the stream comes to it. */
cudaError_t kl_curand_seed(struct kl_curand_state *state, unsigned long long seed, unsigned long long offset,
                           cudaStream_t stream);

/** `count` numbers of a kind to `output`; a and b are mean and deviation, or a is Poisson's lambda. `count` is even for pairs. */
cudaError_t kl_curand_fill(struct kl_curand_state *state, enum kl_curand_kind kind, void *output, size_t count,
                           double a, double b, cudaStream_t stream);

/** Does this kind make two numbers at once? */
int kl_curand_pairs(enum kl_curand_kind kind);

#endif
