/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

enum { COLD = 1 };            /* uses of a block that do not count */
enum { CLEARLY = 7, OF = 8 }; /* faster: in less than 7/8 of the time */
enum { COMPARED_BYTES = 16 << 20, COMPARED_LEAST = 2, COMPARED_MOST = 16 };
enum { AT_FIRST = 4 }; /* uses of a block in the first comparison, at most */

/* Of a cycle. Before the first comparison memory is touched for the first time: that is in nobody's time. */
enum part { WARM, FIRST, SECOND, OVER };

static enum part part_of(const struct kl_lately *l)
{
    const uint32_t block = l->block, at = l->uses - KL_LATELY_WARM;

    if (l->uses < KL_LATELY_WARM) return WARM;
    return at < block ? FIRST : at < 2 * block ? SECOND : OVER;
}

/* The first use after a comparison. */
static uint32_t compared_at(const struct kl_lately *l)
{
    return KL_LATELY_WARM + 2 * l->block;
}

/* Which way is better, as far as is known before any use. */
static int foreseen(const struct kl_lately *of, int nsizes, int size, int guess)
{
    static const int steps[] = {-1, 1, -2, 2};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const int other = size + steps[i];
        if (other < 0 || other >= nsizes || !of[other].compared) continue;
        if (of[other].guess == guess) return of[other].better;
    }
    return guess;
}

struct kl_lately *kl_lately_of(struct kl_lately *of, int nsizes, int size, int block, int guess)
{
    struct kl_lately *l = &of[size];
    const uint32_t most = (uint32_t)block;

    if (l->block) return l;
    *l = (struct kl_lately){.block = most < AT_FIRST ? most : AT_FIRST, .most = most, .guess = guess};
    l->better = foreseen(of, nsizes, size, guess);
    return l;
}

int kl_lately_block(size_t bytes)
{
    const size_t n = COMPARED_BYTES / bytes;

    return n < COMPARED_LEAST ? COMPARED_LEAST : n > COMPARED_MOST ? COMPARED_MOST : (int)n;
}

/* All ranks take the same way in a block, also while they do not agree which is better. */
int kl_lately_way(const struct kl_lately *l)
{
    const enum part part = part_of(l);

    return part == FIRST ? 0 : part == SECOND ? 1 : l->better;
}

bool kl_lately_is_new(const struct kl_lately *l)
{
    return !l->uses || l->uses == compared_at(l);
}

static void compare(struct kl_lately *l, enum part part, uint32_t of_block, uint64_t ns)
{
    uint64_t *sum = &l->ns[part - FIRST];

    *sum = of_block == COLD ? ns : of_block > COLD ? *sum + ns : 0;
    if (part == FIRST || of_block < l->block - 1) return;
    l->compared = true;
    if (OF * l->ns[!l->better] < CLEARLY * l->ns[l->better]) l->better = !l->better;
}

/* The next cycle is longer, and compares more. */
static void end_cycle(struct kl_lately *l)
{
    l->uses = 0;
    l->block = 2 * l->block < l->most ? 2 * l->block : l->most;
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    const enum part part = part_of(l);

    if (part == FIRST || part == SECOND) compare(l, part, (l->uses - KL_LATELY_WARM) % l->block, ns);
    if (++l->uses == KL_LATELY_AGAIN * l->block) end_cycle(l);
}
