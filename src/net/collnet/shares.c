/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet/shares.h"

static size_t ceil_div(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

struct kl_shares kl_shares_of(size_t count, size_t elem_bytes, int n, uint64_t turn)
{
    size_t least = KL_SHARE_LEAST / elem_bytes, grain = KL_SHARE_GRAIN / elem_bytes, each = ceil_div(count, (size_t)n);

    if (each < least) each = least;
    return (struct kl_shares){
        .count = count, .each = ceil_div(each, grain) * grain, .n = n, .first = (int)(turn % (uint64_t)n)};
}

struct kl_share_range kl_share_of(const struct kl_shares *s, int member)
{
    size_t place = (size_t)((member - s->first + s->n) % s->n), first = place * s->each;

    if (first >= s->count) return (struct kl_share_range){.first = s->count};
    return (struct kl_share_range){.first = first, .count = s->count - first < s->each ? s->count - first : s->each};
}
