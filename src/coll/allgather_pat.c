/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allgather_pat.c - every rank's part is sent down its own binomial tree (pat.h), all at once: log2(nranks) hops.
 */
#include "coll/pat.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int distance = kl_pat_distance(p, hop);

    (void)lane;
    return (struct kl_hop){
        .recv = kl_pat_parent(distance),
        .send = kl_pat_children(p->nranks, distance),
        .actions = KL_HOP_KEEP,
        .own = 0,
        .result = kl_wrap(p->rank + distance, p->nranks),
    };
}

const struct kl_schedule kl_allgather_pat = {
    .name = "all-gather",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_PARTS,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
