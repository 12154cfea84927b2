/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring.h - who sends what when, in a ring. Pure arithmetic: no memory, no transport, so it is tested by itself.
 *
 * An operation is a sequence of hops of each rank. In one hop a rank may receive a chunk from its predecessor, combine
 * it with its own contribution, keep the value, and send it on. Long buffers are cut into loops, each small enough that a
 * chunk fits into one fifo step; loops follow each other without a pause.
 *
 * `index` is the place of a rank in the ring, the same for everybody; `place` of a chunk is the index it is counted for.
 *
 * Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations (JPDC 2009).
 */
#ifndef KL_COLL_RING_H
#define KL_COLL_RING_H

#include <stddef.h>

/** What a hop does, in this order. Without RECV the value is the rank's own data. */
enum kl_hop_action {
    KL_HOP_RECV = 1,   /* the value comes from the predecessor */
    KL_HOP_REDUCE = 2, /* combined with the rank's own data */
    KL_HOP_FIRST = 4,  /* own data, as the first contribution of a reduction */
    KL_HOP_FINISH = 8, /* and is now complete: the last touch of the mean */
    KL_HOP_KEEP = 16,  /* stored in the result */
    KL_HOP_SEND = 32   /* sent to the successor */
};

/** One hop: actions, and the places of the chunks in the send and the receive buffer. */
struct kl_ring_hop {
    unsigned actions;
    int own;
    int result;
};

/** What a place means in a buffer. */
enum kl_ring_layout {
    KL_LAYOUT_WHOLE,  /* nothing: every hop of a loop means the same range */
    KL_LAYOUT_CHUNKS, /* a loop's range is divided among the places */
    KL_LAYOUT_PARTS   /* the buffer has one part per rank; a place is the part of the rank with that index */
};

/** A schedule: how many hops a loop has for a rank, and what each is. `root` is the index of the root, where there is one. */
struct kl_ring_schedule {
    const char *name;
    enum kl_ring_layout send, recv;
    int (*hops)(int nranks);
    struct kl_ring_hop (*hop)(int nranks, int index, int root, int hop);
};

extern const struct kl_ring_schedule kl_allreduce_ring, kl_allgather_ring, kl_reducescatter_ring, kl_broadcast_ring,
    kl_reduce_ring;

/** a modulo n for a >= -n, 0 <= result < n. */
static inline int kl_wrap(int a, int n)
{
    return (a + n) % n;
}

#endif
