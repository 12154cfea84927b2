/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allgather_ring.c - every rank's part travels once around the ring; the place of a part is the index of its owner.
 */
#include "coll/ring.h"

static int hops(int nranks)
{
    return nranks;
}

static struct kl_ring_hop hop_at(int nranks, int index, int root, int hop)
{
    unsigned actions = KL_HOP_KEEP;

    (void)root;
    if (hop > 0) actions |= KL_HOP_RECV;
    if (hop < nranks - 1) actions |= KL_HOP_SEND;
    return (struct kl_ring_hop){.actions = actions, .own = 0, .result = kl_wrap(index - hop, nranks)};
}

const struct kl_ring_schedule kl_allgather_ring = {
    .name = "all-gather",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_PARTS,
    .hops = hops,
    .hop = hop_at,
};
