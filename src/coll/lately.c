/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

#include <stdbool.h>

enum { COLD = 2 };            /* uses of a block that do not count */
enum { CLEARLY = 7, OF = 8 }; /* faster: in less than 7/8 of the time */

int kl_lately_choose(struct kl_lately *l)
{
    const uint32_t at = l->uses++ % KL_LATELY_AGAIN;
    const bool other = at >= KL_LATELY_BLOCK && at < 2 * KL_LATELY_BLOCK;

    if (!at) l->ns[0] = l->ns[1] = 0;
    return other ? !l->better : l->better;
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    const uint32_t at = (l->uses - 1) % KL_LATELY_AGAIN;

    if (at >= 2 * KL_LATELY_BLOCK) return;
    if (at % KL_LATELY_BLOCK >= COLD) l->ns[at / KL_LATELY_BLOCK] += ns;
    if (at == 2 * KL_LATELY_BLOCK - 1 && OF * l->ns[1] < CLEARLY * l->ns[0]) l->better = !l->better;
}
