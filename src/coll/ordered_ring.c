/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ordered_ring.c - a loop has as many chunks as there are ranks. First each of them goes 0 -> 1 -> ... -> n-1, and
 * every rank adds its contribution; then, complete, on to 0, 1, ... up to the last rank that wants it.
 *
 * No circle of waiting ranks arises although rank 0 sends all chunks of a loop before it takes a result: more chunks
 * fit into the edges of the ring, KL_EDGE_STEPS into each, than there are ranks.
 */
#include "coll/ordered.h"

static bool is_last(const struct kl_position *p)
{
    return p->rank == p->nranks - 1;
}

/* A chunk on its way to completion. `wanted`: by this rank, `further`: by one below the last. */
static struct kl_hop add(const struct kl_position *p, int place, bool wanted, bool further)
{
    uint32_t actions = p->rank ? KL_HOP_REDUCE : KL_HOP_FIRST;

    if (is_last(p)) actions |= KL_HOP_FINISH | (wanted ? KL_HOP_KEEP : 0);
    return (struct kl_hop){
        .recv = p->rank > 0, .send = !is_last(p) || further, .actions = actions, .own = place, .result = place};
}

static struct kl_hop hand_on(int place, bool wanted, bool further)
{
    return (struct kl_hop){
        .recv = 1, .send = further, .actions = wanted ? KL_HOP_KEEP : 0, .own = place, .result = place};
}

/* ---- for all ---- */

static int hops_of_all(const struct kl_position *p, int lane)
{
    (void)lane;
    return is_last(p) ? p->nranks : 2 * p->nranks;
}

static struct kl_hop hop_of_all(const struct kl_position *p, int lane, int hop)
{
    (void)lane;
    return hop < p->nranks ? add(p, hop, true, p->nranks > 1) : hand_on(hop - p->nranks, true, p->rank < p->nranks - 2);
}

const struct kl_schedule kl_allreduce_ordered_ring = {
    .name = "all-reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .lanes = 1,
    .hops = hops_of_all,
    .hop = hop_of_all,
};

/* ---- for the root ---- */

static int hops_to_root(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->rank <= p->root && p->root < p->nranks - 1 ? 2 * p->nranks : p->nranks;
}

static struct kl_hop hop_to_root(const struct kl_position *p, int lane, int hop)
{
    bool root = p->rank == p->root;

    (void)lane;
    return hop < p->nranks ? add(p, hop, root, p->root < p->nranks - 1)
                           : hand_on(hop - p->nranks, root, p->rank < p->root);
}

const struct kl_schedule kl_reduce_ordered_ring = {
    .name = "reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .lanes = 1,
    .hops = hops_to_root,
    .hop = hop_to_root,
};

/* ---- for the rank of each part: the last rank's parts stay there, and a rank hands on the parts of the ranks behind
 * it ---- */

static int hops_to_parts(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks + (is_last(p) ? 0 : p->nranks - 1 - p->rank);
}

static struct kl_hop hop_to_parts(const struct kl_position *p, int lane, int hop)
{
    struct kl_hop h = {.recv = 0};

    (void)lane;
    if (hop < p->nranks) {
        h = add(p, hop, hop == p->rank, hop < p->nranks - 1);
    } else {
        int part = p->rank + hop - p->nranks;
        h = hand_on(part, part == p->rank, part > p->rank);
    }
    h.result = 0;
    return h;
}

const struct kl_schedule kl_reducescatter_ordered_ring = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops_to_parts,
    .hop = hop_to_parts,
};
