/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allreduce_oneshot.c - every rank sends to all ranks of a line of the grid (graph/grid.h) and reduces the received
 * data; then the same along the next dimension, with the results. So no rank waits for more than one message per
 * dimension.
 *
 *      lane 0            own data to the line of dimension 0
 *      lane 1, hop d     data from dimension d and the own, in the order of places, to the line of dimension d + 1
 *
 * Lane 0 runs ahead as far as there is room, so that data flow while others are reduced. All ranks of a line combine
 * the same partial results in the same order, so all have the same bits.
 */
#include "coll/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    return lane ? p->grid->dimensions : 1;
}

/* The edges of a dimension: its line without this rank, in order. */
static uint32_t line(const struct kl_grid *g, int dimension)
{
    uint64_t edges = (1ull << (g->side[dimension] - 1)) - 1;

    return (uint32_t)(edges << kl_grid_peers(g, dimension));
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    const struct kl_grid *g = p->grid;
    uint32_t send = hop + 1 < g->dimensions ? line(g, hop + 1) : 0;

    if (!lane) return (struct kl_hop){.send = line(g, 0), .actions = KL_HOP_FIRST | KL_HOP_FLEETING};
    return (struct kl_hop){
        .recv = line(g, hop),
        .send = send,
        .actions = KL_HOP_MEET | (hop ? KL_HOP_RESUME : 0) |
                   (send ? KL_HOP_PARK | KL_HOP_FLEETING : KL_HOP_FINISH | KL_HOP_KEEP),
        .before = kl_grid_place(g, hop, p->index),
    };
}

const struct kl_schedule kl_allreduce_oneshot = {
    .name = "all-reduce",
    .send = KL_LAYOUT_WHOLE,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 2,
    .follows = true,
    .hops = hops,
    .hop = hop_at,
};
