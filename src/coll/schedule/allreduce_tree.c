/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allreduce_tree.c - up a tree and down again; a chunk per loop. The other half of the data takes the complementary
 * tree, on a channel of its own (graph/tree.h).
 *
 *      lane 0   receive from the children, add to the own, send to the parent
 *      lane 1   receive from the parent, keep, send to the children
 *
 * Chunks go up while others come down. The root turns them round: it finishes, keeps and sends down in lane 0.
 */
#include "coll/schedule/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    return lane == 0 || p->up;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    const uint32_t children = (1u << p->ndown) - 1, parent = 1u << KL_TREE_UP;
    const uint32_t add = children ? KL_HOP_REDUCE : KL_HOP_FIRST;

    (void)hop;
    if (lane == 1) return (struct kl_hop){.recv = parent, .send = children, .actions = KL_HOP_KEEP};
    if (p->up) return (struct kl_hop){.recv = children, .send = parent, .actions = add};
    return (struct kl_hop){.recv = children, .send = children, .actions = add | KL_HOP_FINISH | KL_HOP_KEEP};
}

const struct kl_schedule kl_allreduce_tree = {
    .name = "all-reduce",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 2,
    .hops = hops,
    .hop = hop_at,
};
