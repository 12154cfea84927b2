/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allgather_ring.c - every rank's part goes once around the ring; the place of a part is the index of its owner.
 */
#include "coll/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    (void)lane;
    return (struct kl_hop){
        .recv = hop > 0,
        .send = hop < p->nranks - 1,
        .actions = KL_HOP_KEEP,
        .own = 0,
        .result = kl_wrap(p->index - hop, p->nranks),
    };
}

const struct kl_schedule kl_allgather_ring = {
    .name = "all-gather",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_PARTS,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
