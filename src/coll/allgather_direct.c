/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allgather_direct.c - CollNetDirect (direct.h): in a loop every rank sends its own part into the network, receives the
 * parts of the heads with its number, one for each node, and passes them on.
 */
#include "coll/direct.h"

static int hops(const struct kl_position *p, int lane)
{
    return lane ? p->nheads * p->nnodes : 1;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int node = hop / p->nheads, head = kl_direct_turn(p, lane, hop % p->nheads);

    if (lane == 0) return (struct kl_hop){.send = 1u << KL_DIRECT_NET};
    return kl_direct_take(p, head, head * p->nnodes + node);
}

const struct kl_schedule kl_allgather_direct = {
    .name = "all-gather",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_PARTS,
    .lanes = 2,
    .hops = hops,
    .hop = hop_at,
};
