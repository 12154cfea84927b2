/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schedule.h - the order of sends and receives: pure arithmetic, no memory, no transport, so it is tested by itself.
 *
 * An operation on one channel is cut into *loops*, each small enough that a chunk fits into one step of a fifo. In a
 * loop a rank makes *hops*. A hop receives a chunk from a set of edges, combines them with the rank's own contribution,
 * keeps the value and sends it to a set of edges; unneeded parts are left out. A schedule may have several *lanes*:
 * sequences of hops that don't wait for each other, such as the ways up and down a tree. Within a lane the order is
 * fixed, and loops follow each other without a pause.
 *
 * Edges are numbered by the algorithm (algorithm.h), receiving and sending ones apart: bit i of a set is edge i. A
 * *place* is the position of a chunk in a buffer; the layout defines its meaning.
 *
 * Room:       an edge holds KL_EDGE_STEPS chunks or more. A hop is either done, once all its data and room are there,
 *             or not begun.
 * Invariant:  both ends of an edge use its chunks in the same order: the k-th chunk sent is the k-th received.
 * Threads:    pure.
 */
#ifndef KL_COLL_SCHEDULE_SCHEDULE_H
#define KL_COLL_SCHEDULE_SCHEDULE_H

#include "graph/grid.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_LANES_MAX = 2, KL_EDGES_MAX = 32 }; /* of an algorithm on one channel, per direction */
enum { KL_EDGE_STEPS = 2 };                   /* with one, the ranks of a ring would all wait for each other */

/** The actions of a hop on its value, in this order. Without received data the value is the rank's own data. */
enum kl_hop_action {
    KL_HOP_REDUCE = 1, /* combine the received data with the rank's own */
    KL_HOP_FIRST = 2,  /* own data, as the first contribution of a reduction */
    KL_HOP_FINISH = 4, /* the value is now complete: apply the last step of the mean */
    KL_HOP_KEEP = 8,   /* stored in the result */

    /* Exchanges, in which all ranks of a line get the same bits: */
    KL_HOP_MERGE = 16,         /* merge the received data and the own, which come after `before` edges, in this order */
    KL_HOP_RESUME = 32,        /* the own data are the parked value; else own data, as a first contribution */
    KL_HOP_PARK = 64,          /* stored in the result, incomplete, until the next hop of the lane */
    KL_HOP_RESULT_REUSED = 128 /* the result may be written while others still read the sent data */
};

/** One hop. Several received chunks need KL_HOP_REDUCE (own data and edge 0 first, then edge 1, ...) or KL_HOP_MERGE. */
struct kl_hop {
    uint32_t recv, send; /* edges */
    uint32_t actions;
    int own, result; /* places in the send and the receive buffer */
    int before;      /* KL_HOP_MERGE: edges, of those received */
};

/** The meaning of a place in a buffer. */
enum kl_layout {
    KL_LAYOUT_WHOLE,  /* none: every hop of a loop covers the same range */
    KL_LAYOUT_CHUNKS, /* a loop's range is divided among nranks places, or nheads */
    KL_LAYOUT_PARTS   /* the buffer has one part per rank; with an order, a place is the part of the rank at that
                     * position */
};

/** A rank's position in the graph of a schedule. Fields that a graph does not have are 0. */
struct kl_position {
    int nranks, rank;
    /** PAT: capacity of every edge in chunks; the same at all ranks. 0 is 1. */
    int steps;
    /** Ring: distance from rank 0 along it, of the rank and of the root. Without an order, the root itself. Grid: index. */
    int index, root;
    /** Ring: the ranks from this one on. CollNetDirect: all, by head and node, or NULL. */
    const int *order;
    /** Tree: children. A head of CollNetDirect: other ranks of the node. */
    int ndown;
    /** Tree: 1 if there is a parent. */
    int up;
    /** CollNet: the rank's number among the heads of its node, which use the network; -1: it is none. */
    int head;
    /** CollNetDirect: heads of a node; nodes; the first head of a rank that is none. */
    int nheads, nnodes, shift;
    const struct kl_grid *grid;
};

struct kl_schedule {
    const char *name;
    enum kl_layout send, recv;
    int lanes;
    bool follows; /* lane 1 begins a loop when lane 0 has done it: it may write where lane 0 reads */
    int (*hops)(const struct kl_position *p, int lane); /* of one loop; may be 0 */
    struct kl_hop (*hop)(const struct kl_position *p, int lane, int hop);
};

/** Chunks of a loop, with KL_LAYOUT_CHUNKS. */
static inline int kl_chunks_of(const struct kl_position *p)
{
    return p->nheads ? p->nheads : p->nranks;
}

/** A rank as the root of a position. */
static inline int kl_root_of(const struct kl_position *p, int rank)
{
    int i = 0;

    if (!p->order) return rank;
    while (p->order[i] != rank) i++;
    return (p->index + i) % p->nranks;
}

/** a modulo n for a >= -n, 0 <= result < n. */
static inline int kl_wrap(int a, int n)
{
    return (a + n) % n;
}

/* ---- rings: edge 0 is the predecessor, or the successor ---- */
extern const struct kl_schedule kl_allreduce_ring, kl_allgather_ring, kl_reducescatter_ring, kl_broadcast_ring,
    kl_reduce_ring;

/* ---- trees: edges 0 to 2 are the children, KL_TREE_UP is the parent ---- */
enum { KL_TREE_UP = 3 };
extern const struct kl_schedule kl_allreduce_tree;

/* ---- grids: dimension after dimension, the others of the line in the order of their places ---- */
extern const struct kl_schedule kl_allreduce_oneshot;

/* ---- chains to a network that reduces: edge 0 is the one behind, KL_TREE_UP the one before, or the network at the head ---- */
extern const struct kl_schedule kl_allreduce_chain;

/* ---- heads that meet in a network that reduces: edges as in direct.h ---- */
extern const struct kl_schedule kl_allreduce_direct, kl_allgather_direct, kl_reducescatter_direct;

/* ---- PAT: edge k leads to the rank 2^k further. All-gather receives from rank + 2^k and sends to rank - 2^k;
 * reduce-scatter receives from rank - 2^k and sends to rank + 2^k (modulo nranks) ---- */
extern const struct kl_schedule kl_allgather_pat, kl_reducescatter_pat;

#endif
