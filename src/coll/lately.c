/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

enum { CLEARLY = 4, OF = 5 }; /* faster: in less than 4/5 of the time */

/* A block has so many uses, or as many as move so much: in the first comparison, and some time. */
enum { LEAST = 3, AT_FIRST = 32, AT_FIRST_BYTES = 4 << 20, MOST = 64, MOST_BYTES = 16 << 20 };

/* Of a cycle. Before the first comparison memory is touched for the first time, also all that is staged in (kl_cache_cycle): that is in nobody's time. */
enum part { WARM, FIRST, SECOND, OVER };

static enum part part_of(const struct kl_lately *l)
{
    const uint32_t block = l->block, at = l->uses - l->warm;

    if (l->uses < l->warm) return WARM;
    return at < block ? FIRST : at < 2 * block ? SECOND : OVER;
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

/* Uses that move so many bytes. */
static uint32_t uses_of(size_t bytes, size_t least, size_t most, size_t most_bytes)
{
    const size_t n = most_bytes / bytes;

    return (uint32_t)(n < least ? least : n > most ? most : n);
}

struct kl_lately *kl_lately_of(struct kl_lately *of, int nsizes, int size, size_t bytes, int guess)
{
    struct kl_lately *l = &of[size];

    if (l->block) return l;
    *l = (struct kl_lately){.block = uses_of(bytes, LEAST, AT_FIRST, AT_FIRST_BYTES),
                            .most = uses_of(bytes, LEAST, MOST, MOST_BYTES),
                            .warm = uses_of(bytes, KL_LATELY_WARM, KL_LATELY_MOST_WARM, KL_LATELY_WARM_BYTES),
                            .again = KL_LATELY_SOON,
                            .guess = guess};
    l->better = foreseen(of, nsizes, size, guess);
    return l;
}

/* All ranks take the same way in a block, also while they do not agree which is better. */
int kl_lately_way(const struct kl_lately *l)
{
    const enum part part = part_of(l);

    return part == FIRST ? 0 : part == SECOND ? 1 : l->better;
}

bool kl_lately_is_compared(const struct kl_lately *l)
{
    return l->uses == l->warm + 2 * l->block;
}

void kl_lately_decide(struct kl_lately *l, const uint64_t ns[2])
{
    l->compared = true;
    if (OF * ns[!l->better] < CLEARLY * ns[l->better]) l->better = !l->better;
}

/* The second half of a block of the first way, and the use that ends it; and what so many of the second one take. */
static void add(struct kl_lately *l, uint32_t at, uint64_t ns)
{
    const uint32_t block = l->block, half = block / 2;

    if (!at) l->ns[0] = l->ns[1] = 0;
    if (at >= half) l->ns[at > block] += ns;
    if (at == 2 * block - 1) l->ns[1] = l->ns[1] * (block - half + 1) / (block - 1);
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

/* The next cycle is longer, and compares more. */
static void end_cycle(struct kl_lately *l)
{
    l->uses = 0;
    l->warm = KL_LATELY_WARM;
    l->block = at_most(2 * l->block, l->most);
    l->again = at_most(2 * l->again, KL_LATELY_SELDOM);
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    const enum part part = part_of(l);

    if (part == FIRST || part == SECOND) add(l, l->uses - l->warm, ns);
    if (++l->uses == l->again * l->block) end_cycle(l);
}
