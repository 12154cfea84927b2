/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lately.h - which of two ways has been faster lately, where that depends on the machine and on what else runs there.
 *
 * Both are measured one after the other, at first and again and again: some uses of the first way, and as many of the second. The one that was
 * worse has to be clearly faster to take the other one's place. The first comparison is short, so that a wrong guess does not last; later ones are longer,
 * and come more seldom. Whoever does the same at many sizes has one of these for each: until both ways are compared, what was found at a size nearby counts. Ranks that do the same count the same uses, so that they try the other way together.
 * A single use tells little: where ranks share CPUs, it may wait for anybody. Nor does the first one of a block, which finds cold
 * caches. Nor does a single rank, where some run ahead and others catch up: of ranks that agree, the slowest counts.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_LATELY_H
#define KL_COLL_LATELY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_LATELY_WARM = 4 };   /* uses before the first comparison */
enum { KL_LATELY_AGAIN = 64 }; /* blocks, from one comparison to the next: a cycle */

struct kl_lately {
    uint32_t block; /* uses of either way, 2 or more, that are compared; 0: not begun */
    uint32_t most;  /* of a block, some time */
    uint32_t uses;  /* of the cycle */
    int better;     /* way: 0 or 1 */
    int guess;      /* and what it was at first */
    bool compared;  /* at least once */
    uint64_t ns[2]; /* sums of the blocks, by way */
};

/**
 * That of a size, out of those of `nsizes` powers of 2; all zeros: none has been used. One that is new begins with a guess which way is better; or with what
 * has been better up to 4 times as large or as small, where the guess was the same. `bytes`: that a use moves, about; the more, the fewer uses tell.
 */
struct kl_lately *kl_lately_of(struct kl_lately *of, int nsizes, int size, size_t bytes, int guess);

/** The way of the use that is next, or under way: 0 or 1. */
int kl_lately_way(const struct kl_lately *lately);

/** Is this use the first one after a comparison? */
bool kl_lately_is_compared(const struct kl_lately *lately);

/** During that use, or before: which way is better from now on, as these were the times of both. A rank's own (`ns`), or those of the slowest. */
void kl_lately_decide(struct kl_lately *lately, const uint64_t ns[2]);

/** The use under way is over, and took so long. */
void kl_lately_took(struct kl_lately *lately, uint64_t ns);

#endif
