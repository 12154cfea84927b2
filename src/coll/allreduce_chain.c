/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allreduce_chain.c - along the chain of a node to its head, through a network that adds up the heads' data, and back;
 * a chunk per loop.
 *
 *      lane 0   receive from behind, add to the own, send ahead; the head sends to the network
 *      lane 1   receive from ahead, keep, send behind; the head receives from the network, and finishes
 *
 * As a tree (allreduce_tree.c) with the network as its root: no rank turns chunks round.
 */
#include "coll/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)p, (void)lane;
    return 1;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    const uint32_t behind = p->ndown ? 1 : 0, ahead = 1u << KL_TREE_UP;

    (void)hop;
    if (lane == 0)
        return (struct kl_hop){.recv = behind, .send = ahead, .actions = behind ? KL_HOP_REDUCE : KL_HOP_FIRST};
    return (struct kl_hop){
        .recv = ahead, .send = behind, .actions = KL_HOP_KEEP | (p->head < 0 ? 0 : (uint32_t)KL_HOP_FINISH)};
}

const struct kl_schedule kl_allreduce_chain = {
    .name = "all-reduce",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 2,
    .hops = hops,
    .hop = hop_at,
};
