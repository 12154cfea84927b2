/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allreduce_ring.c - reduce-scatter, then all-gather, in one pass around a ring; nranks chunks per loop.
 *
 * Chunk c is begun by the rank with index c and finished by its predecessor in the ring. For 3 ranks, index 0:
 *
 *      hop             0     1           2                 3           4
 *      receives              2           1                 0           2
 *      and             begin add         add and finish    keep        keep
 *      sends           0     2           1                 0
 */
#include "coll/ring.h"

static int hops(int nranks)
{
    return 2 * nranks - 1;
}

static unsigned actions(int nranks, int hop)
{
    if (hop == 0) return KL_HOP_FIRST | KL_HOP_SEND;
    if (hop < nranks - 1) return KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_SEND;
    if (hop == nranks - 1) return KL_HOP_RECV | KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP | KL_HOP_SEND;
    if (hop < 2 * nranks - 2) return KL_HOP_RECV | KL_HOP_KEEP | KL_HOP_SEND;
    return KL_HOP_RECV | KL_HOP_KEEP;
}

static struct kl_ring_hop hop_at(int nranks, int index, int root, int hop)
{
    int chunk = kl_wrap(index - hop % nranks, nranks);

    (void)root;
    return (struct kl_ring_hop){.actions = actions(nranks, hop), .own = chunk, .result = chunk};
}

const struct kl_ring_schedule kl_allreduce_ring = {
    .name = "all-reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .hops = hops,
    .hop = hop_at,
};
