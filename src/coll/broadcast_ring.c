/* SPDX-License-Identifier: Apache-2.0 */
/**
 * broadcast_ring.c - a chain from the root to its predecessor.
 */
#include "coll/ring.h"

static int hops(int nranks)
{
    (void)nranks;
    return 1;
}

static struct kl_ring_hop hop_at(int nranks, int index, int root, int hop)
{
    unsigned actions = KL_HOP_KEEP;

    (void)hop;
    if (index != root) actions |= KL_HOP_RECV;
    if (kl_wrap(index + 1, nranks) != root) actions |= KL_HOP_SEND;
    return (struct kl_ring_hop){.actions = actions};
}

const struct kl_ring_schedule kl_broadcast_ring = {
    .name = "broadcast",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .hops = hops,
    .hop = hop_at,
};
