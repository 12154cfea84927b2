/* SPDX-License-Identifier: Apache-2.0 */
/**
 * scatter.h - permutation of the slots of a ring that defeats hardware prefetchers: for rings that one core writes and
 * others read a moment later, one or two lines at a time.
 *
 * A prefetcher that fetches lines before they are written takes them from the core that is about to write them, and
 * each line is transferred twice. Prefetchers follow any constant stride, and fetch adjacent lines. Bit-reversed order
 * avoids both, but its power-of-two strides would map successive slots to the same cache sets; mixing in the sequence
 * number's lower bits prevents that. On 2 far cores of an AMD EPYC a broadcast of 32 bytes takes 0.09 to 0.11 us this
 * way, in order 0.19 us.
 *
 * Threads: pure function.
 */
#ifndef KL_BASE_SCATTER_H
#define KL_BASE_SCATTER_H

#include <stdint.h>

enum { KL_SCATTER_BITS = 10 };

/**
 * The slot for sequence number `turn`, of 2^bits slots (bits <= KL_SCATTER_BITS): a permutation of each aligned block
 * of that many numbers.
 */
static inline uint32_t kl_scatter(uint64_t turn, unsigned bits)
{
    enum { HALF = KL_SCATTER_BITS / 2, MASK = (1 << HALF) - 1 };
    static const uint8_t reversed[1 << HALF] = {0, 16, 8, 24, 4, 20, 12, 28, 2, 18, 10, 26, 6, 22, 14, 30,
                                                1, 17, 9, 25, 5, 21, 13, 29, 3, 19, 11, 27, 7, 23, 15, 31};
    const uint32_t all = (uint32_t)reversed[turn & MASK] << HALF | reversed[turn >> HALF & MASK];
    const uint32_t lower =
        /* mixed into the bits that are derived from these: stays a permutation */
        (uint32_t)turn & ((1u << bits / 2) - 1);

    return all >> (KL_SCATTER_BITS - bits) ^ lower;
}

#endif
