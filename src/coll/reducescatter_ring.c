/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reducescatter_ring.c - the part of index c begins at index c + 1 and is complete at its owner.
 */
#include "coll/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks;
}

static uint32_t actions(int nranks, int hop)
{
    uint32_t on_the_way = hop == 0 ? KL_HOP_FIRST : KL_HOP_REDUCE;

    return hop < nranks - 1 ? on_the_way : on_the_way | KL_HOP_FINISH | KL_HOP_KEEP;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    (void)lane;
    return (struct kl_hop){
        .recv = hop > 0,
        .send = hop < p->nranks - 1,
        .actions = actions(p->nranks, hop),
        .own = kl_wrap(p->index - 1 - hop, p->nranks),
        .result = 0,
    };
}

const struct kl_schedule kl_reducescatter_ring = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
