/* SPDX-License-Identifier: Apache-2.0 */
/** gpu_data.h - elements and factors of ranks, for tests of collectives on GPUs: the same for the same seed and rank. */
#ifndef KOLO_TEST_GPU_DATA_H
#define KOLO_TEST_GPU_DATA_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gpu_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/** Random bits, among them NaNs, infinities and denormals, or small numbers. */
static inline void gpu_fill(unsigned char *to, size_t bytes, unsigned seed, int rank)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(gpu_mix(seed * 977u + (unsigned)rank * 131u + i * 7919u + 1) >> 13);
}

/** The factor of a pre-multiplied sum. */
static inline void gpu_factor(ncclDataType_t type, unsigned seed, int rank, unsigned char factor[8])
{
    gpu_fill(factor, 8, seed + 5, rank);
    if (type == ncclFloat32) memcpy(factor, &(float){0.75f + (float)rank}, 4);
    if (type == ncclFloat64) memcpy(factor, &(double){0.1 + rank}, 8);
    if (type == ncclFloat16) memcpy(factor, &(uint16_t){0x3800 + (uint16_t)rank}, 2);
    if (type == ncclBfloat16) memcpy(factor, &(uint16_t){0x3f00 + (uint16_t)rank}, 2);
    if (type == ncclFloat8e4m3 || type == ncclFloat8e5m2) factor[0] = (unsigned char)(0x38 + rank);
}

#endif
