/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lately.h - which of two ways has been faster lately, where that depends on the machine and on what else runs there.
 *
 * Both are measured one after the other, at first and in every KL_LATELY_AGAIN uses: KL_LATELY_BLOCK uses of the way that was better, and as
 * many of the other one, which has to be clearly faster to take its place. Ranks that do the same count the same uses, so that they try the
 * other way together. A single use tells little: where ranks share CPUs, it may wait for anybody. Nor do the first ones of a
 * block, which find cold caches.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_LATELY_H
#define KL_COLL_LATELY_H

#include <stdint.h>

enum { KL_LATELY_BLOCK = 16, KL_LATELY_AGAIN = 1024 };

struct kl_lately {
    uint32_t uses;
    int better;     /* way: 0 or 1 */
    uint64_t ns[2]; /* sums of the blocks: of the better way, of the other one */
};

/** The way of the next use: 0 or 1. */
int kl_lately_choose(struct kl_lately *lately);

/** So long the last use took. */
void kl_lately_took(struct kl_lately *lately, uint64_t ns);

#endif
