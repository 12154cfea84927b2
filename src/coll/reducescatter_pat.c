/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reducescatter_pat.c - every part is added up along its own binomial tree (pat.h) from the leaves to its home: the way
 * of allgather_pat.c backwards, in which a rank adds its children's data.
 */
#include "coll/pat.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int distance = kl_pat_distance(p, p->nranks - 1 - hop);
    uint32_t children = kl_pat_children(p->nranks, distance);
    uint32_t actions = children ? KL_HOP_REDUCE : KL_HOP_FIRST;

    (void)lane;
    if (distance == 0) actions |= KL_HOP_FINISH | KL_HOP_KEEP;
    return (struct kl_hop){
        .recv = children,
        .send = kl_pat_parent(distance),
        .actions = actions,
        .own = kl_wrap(p->rank + distance, p->nranks),
        .result = 0,
    };
}

const struct kl_schedule kl_reducescatter_pat = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
