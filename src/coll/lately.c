/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

enum { COLD = 1 };            /* uses of a block that do not count */
enum { CLEARLY = 7, OF = 8 }; /* faster: in less than 7/8 of the time */
enum { COMPARED_BYTES = 16 << 20, COMPARED_LEAST = 2, COMPARED_MOST = 16 };

/* Blocks. WARM, which is some of them where they are short, has the guess: memory is touched for the first time, and that is in nobody's time. */
enum { WARM, FIRST, SECOND, OVER };
enum { WARM_USES = 8 }; /* at least */

/* The first use that is compared. */
static uint32_t warm_uses(const struct kl_lately *l)
{
    return l->block < WARM_USES ? WARM_USES : l->block;
}

/* Of those from one comparison to the next, the how many-th is this use? */
static uint32_t place_of(const struct kl_lately *l, uint32_t use)
{
    return use % (KL_LATELY_AGAIN * l->block);
}

static uint32_t block_of(const struct kl_lately *l, uint32_t place)
{
    const uint32_t warm = warm_uses(l);

    return place < warm ? WARM : FIRST + (place - warm) / l->block;
}

/* Of the block. */
static uint32_t use_of(const struct kl_lately *l, uint32_t place)
{
    const uint32_t warm = warm_uses(l);

    return place < warm ? place : (place - warm) % l->block;
}

/* The first one after a comparison. */
static uint32_t compared_at(const struct kl_lately *l)
{
    return warm_uses(l) + (OVER - FIRST) * l->block;
}

void kl_lately_begin(struct kl_lately *l, int block, int guess, const struct kl_lately *alike)
{
    *l = (struct kl_lately){.block = (uint32_t)block, .better = guess};
    if (!alike) return;
    l->better = alike->better;
    l->uses = compared_at(l);
}

int kl_lately_block(size_t bytes)
{
    const size_t n = COMPARED_BYTES / bytes;

    return n < COMPARED_LEAST ? COMPARED_LEAST : n > COMPARED_MOST ? COMPARED_MOST : (int)n;
}

/* All ranks take the same way in a block, also while they do not agree which is better. */
int kl_lately_way(const struct kl_lately *l)
{
    const uint32_t block = block_of(l, place_of(l, l->uses));

    return block == FIRST ? 0 : block == SECOND ? 1 : l->better;
}

bool kl_lately_is_new(const struct kl_lately *l)
{
    return !l->uses || place_of(l, l->uses) == compared_at(l);
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    const uint32_t at = place_of(l, l->uses++), block = block_of(l, at), of_block = use_of(l, at);

    if (block != FIRST && block != SECOND) return;
    uint64_t *sum = &l->ns[block - FIRST];
    *sum = of_block == COLD ? ns : of_block > COLD ? *sum + ns : 0;
    if (block == FIRST || of_block < l->block - 1) return;
    if (OF * l->ns[!l->better] < CLEARLY * l->ns[l->better]) l->better = !l->better;
}
