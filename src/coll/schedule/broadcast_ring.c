/* SPDX-License-Identifier: Apache-2.0 */
/**
 * broadcast_ring.c - a chain from the root to its predecessor.
 */
#include "coll/schedule/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)p, (void)lane;
    return 1;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    (void)lane, (void)hop;
    return (struct kl_hop){
        .recv = p->index != p->root,
        .send = kl_wrap(p->index + 1, p->nranks) != p->root,
        .actions = KL_HOP_KEEP,
    };
}

const struct kl_schedule kl_broadcast_ring = {
    .name = "broadcast",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
