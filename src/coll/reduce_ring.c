/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reduce_ring.c - a chain that begins behind the root, adds every rank's data, and is complete at the root.
 */
#include "coll/ring.h"

static int hops(int nranks)
{
    (void)nranks;
    return 1;
}

static struct kl_ring_hop hop_at(int nranks, int index, int root, int hop)
{
    unsigned actions = KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_SEND;

    (void)hop;
    if (index == kl_wrap(root + 1, nranks)) actions = KL_HOP_FIRST | KL_HOP_SEND;
    if (index == root) actions = KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP;
    return (struct kl_ring_hop){.actions = actions};
}

const struct kl_ring_schedule kl_reduce_ring = {
    .name = "reduce",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .hops = hops,
    .hop = hop_at,
};
