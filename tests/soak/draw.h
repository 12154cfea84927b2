/* SPDX-License-Identifier: Apache-2.0 */
/** draw.h - random numbers that follow from a seed alone: the same order of draws gives the same numbers. Source:
 * splitmix64. */
#ifndef KOLO_SOAK_DRAW_H
#define KOLO_SOAK_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/** Every bit of the input changes half of the output's. */
static inline uint64_t soak_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t soak_draw(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    return soak_mix(*seed);
}

/** 0 ... n - 1. */
static inline int soak_pick(uint64_t *seed, int n)
{
    return (int)(soak_draw(seed) % (unsigned)n);
}

/** True once in n times. */
static inline bool soak_once_in(uint64_t *seed, int n)
{
    return !soak_pick(seed, n);
}

/** A seed of its own for the k-th thing of the program of `seed`. */
static inline uint64_t soak_key(uint64_t seed, uint64_t k)
{
    return soak_mix(soak_mix(seed + 0x9e3779b97f4a7c15u) + k);
}

#endif
