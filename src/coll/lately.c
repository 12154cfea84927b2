/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

#include <stdbool.h>

enum { COLD = 2 };            /* uses of a block that do not count */
enum { CLEARLY = 7, OF = 8 }; /* faster: in less than 7/8 of the time */

/* Of those from one comparison to the next, the how many-th is this use? */
static uint32_t place_of(const struct kl_lately *l, uint32_t use)
{
    return use % (KL_LATELY_AGAIN * l->block);
}

void kl_lately_begin(struct kl_lately *l, int block, const struct kl_lately *alike)
{
    *l = (struct kl_lately){.block = (uint32_t)block};
    if (!alike) return;
    l->better = alike->better;
    l->uses = 2 * l->block;
}

int kl_lately_choose(struct kl_lately *l)
{
    const uint32_t at = place_of(l, l->uses++);
    const bool other = at >= l->block && at < 2 * l->block;

    if (!at) l->ns[0] = l->ns[1] = 0;
    return other ? !l->better : l->better;
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    const uint32_t at = place_of(l, l->uses - 1);

    if (at >= 2 * l->block) return;
    if (at % l->block >= COLD) l->ns[at / l->block] += ns;
    if (at == 2 * l->block - 1 && OF * l->ns[1] < CLEARLY * l->ns[0]) l->better = !l->better;
}
