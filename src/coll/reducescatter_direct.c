/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reducescatter_direct.c - CollNetDirect (direct.h): in a loop every rank adds up its node's contributions to the parts
 * of the heads with its number, one for each node, sends them into the network, and receives its own.
 */
#include "coll/direct.h"

static int hops(const struct kl_position *p, int lane)
{
    return lane ? 1 : p->nheads * p->nnodes;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int node = hop / p->nheads, head = kl_direct_turn(p, lane, hop % p->nheads);

    if (lane == 0) return kl_direct_give(p, head, head * p->nnodes + node);
    return (struct kl_hop){.recv = 1u << KL_DIRECT_NET, .actions = KL_HOP_KEEP | KL_HOP_FINISH};
}

const struct kl_schedule kl_reducescatter_direct = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 2,
    .hops = hops,
    .hop = hop_at,
};
