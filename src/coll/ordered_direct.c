/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ordered_direct.c - every rank sends every owner its elements, and the owner combines them and its own in the order of
 * ranks. The owner of a part is its rank; else a loop's range is divided among all ranks.
 *
 *      hops 0 to n-2     own data to their owners, beginning with the next rank
 *      hop  n-1          as an owner: combine; keep, or send to the ranks that want the result
 *      hops n to 2n-2    all-reduce, and the root of a reduce: results from their owners
 *
 * All in one lane: both ends of an edge then know in which order data and results come.
 */
#include "coll/ordered.h"

static int peer_at(const struct kl_position *p, int hop)
{
    return kl_wrap(p->rank + 1 + hop % p->nranks, p->nranks);
}

static uint32_t edge_to(const struct kl_position *p, int peer)
{
    return 1u << kl_ordered_edge(p->rank, peer);
}

static uint32_t all_edges(const struct kl_position *p)
{
    return (uint32_t)((1ull << (p->nranks - 1)) - 1);
}

static struct kl_hop send_own(const struct kl_position *p, int peer)
{
    return (struct kl_hop){.send = edge_to(p, peer), .actions = KL_HOP_FIRST, .own = peer, .result = peer};
}

static struct kl_hop combine(const struct kl_position *p, bool keep, uint32_t send)
{
    return (struct kl_hop){
        .recv = all_edges(p),
        .send = send,
        .actions = KL_HOP_MEET | KL_HOP_FINISH | (keep ? KL_HOP_KEEP : 0),
        .own = p->rank,
        .result = p->rank,
        .before = p->rank,
    };
}

static struct kl_hop take_result(const struct kl_position *p, int peer)
{
    return (struct kl_hop){.recv = edge_to(p, peer), .actions = KL_HOP_KEEP, .own = peer, .result = peer};
}

/* ---- for all ---- */

static int hops_of_all(const struct kl_position *p, int lane)
{
    (void)lane;
    return 2 * p->nranks - 1;
}

static struct kl_hop hop_of_all(const struct kl_position *p, int lane, int hop)
{
    (void)lane;
    if (hop == p->nranks - 1) return combine(p, true, all_edges(p));
    return hop < p->nranks ? send_own(p, peer_at(p, hop)) : take_result(p, peer_at(p, hop));
}

const struct kl_schedule kl_allreduce_ordered = {
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
    return p->rank == p->root ? 2 * p->nranks - 1 : p->nranks;
}

static struct kl_hop hop_to_root(const struct kl_position *p, int lane, int hop)
{
    bool root = p->rank == p->root;

    if (hop == p->nranks - 1) return combine(p, root, root ? 0 : edge_to(p, p->root));
    return hop_of_all(p, lane, hop);
}

const struct kl_schedule kl_reduce_ordered = {
    .name = "reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .lanes = 1,
    .hops = hops_to_root,
    .hop = hop_to_root,
};

/* ---- for the rank of each part ---- */

static int hops_to_parts(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nranks;
}

static struct kl_hop hop_to_parts(const struct kl_position *p, int lane, int hop)
{
    (void)lane;
    return hop == p->nranks - 1 ? combine(p, true, 0) : send_own(p, peer_at(p, hop));
}

const struct kl_schedule kl_reducescatter_ordered = {
    .name = "reduce-scatter",
    .send = KL_LAYOUT_PARTS,
    .recv = KL_LAYOUT_WHOLE,
    .lanes = 1,
    .hops = hops_to_parts,
    .hop = hop_to_parts,
};
