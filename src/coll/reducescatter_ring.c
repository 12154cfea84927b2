/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reducescatter_ring.c - the part of index c begins at index c + 1 and is complete when it reaches its owner.
 */
#include "coll/ring.h"

static int hops(int nranks)
{
    return nranks;
}

static unsigned actions(int nranks, int hop)
{
    if (hop == 0) return KL_HOP_FIRST | KL_HOP_SEND;
    if (hop < nranks - 1) return KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_SEND;
    return KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP;
}

static struct kl_ring_hop hop_at(int nranks, int index, int root, int hop)
{
    (void)root;
    return (struct kl_ring_hop){.actions = actions(nranks, hop), .own = kl_wrap(index - 1 - hop, nranks), .result = 0};
}

const struct kl_ring_schedule kl_reducescatter_ring = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .hops = hops,
    .hop = hop_at,
};
