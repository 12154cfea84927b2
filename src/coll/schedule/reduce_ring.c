/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reduce_ring.c - a chain that begins behind the root, adds every rank's data, and is complete at the root.
 */
#include "coll/schedule/schedule.h"

#include <stdbool.h>

static int hops(const struct kl_position *p, int lane)
{
    (void)p, (void)lane;
    return 1;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    bool first = p->index == kl_wrap(p->root + 1, p->nranks), last = p->index == p->root;
    uint32_t actions = first ? KL_HOP_FIRST : KL_HOP_REDUCE;

    (void)lane, (void)hop;
    if (last) actions |= KL_HOP_FINISH | KL_HOP_KEEP;
    return (struct kl_hop){.recv = !first, .send = !last, .actions = actions};
}

const struct kl_schedule kl_reduce_ring = {
    .name = "reduce",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
