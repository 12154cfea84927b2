/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_wires.h - the rings and trees of a communicator as arrays: for questions that walk all of them.
 *
 * Errors:  ncclSystemError when memory is short.
 * Threads: const once made.
 */
#ifndef KL_PLAN_ORDER_WIRES_H
#define KL_PLAN_ORDER_WIRES_H

#include "graph/connect.h"

struct kl_order_wires {
    int nranks, nnodes, nchannels, nheads;
    int32_t *ring;                   /* by channel and place: ranks, the first of each ring is rank 0 */
    int32_t *place;                  /* by channel and rank: its place in the ring */
    struct kl_tree_neighbours *tree; /* by channel and rank */
    int32_t *head;                   /* NVLS: by node and head: ranks */
};

/** Free with kl_order_wires_fini, also after a failure. */
ncclResult_t kl_order_wires_of(const struct kl_connect *connect, struct kl_order_wires *wires);

/** Room for so many: rings and trees of zeros. */
ncclResult_t kl_order_wires_init(int nranks, int nnodes, int nchannels, int nheads, struct kl_order_wires *wires);
void kl_order_wires_fini(struct kl_order_wires *wires);

/** Set a channel's ring from its ranks in order, which begin with rank 0. */
void kl_order_wires_set_ring(struct kl_order_wires *wires, int channel, const int32_t *order);

static inline const int32_t *kl_order_ring(const struct kl_order_wires *w, int channel)
{
    return &w->ring[(size_t)channel * (size_t)w->nranks];
}

/** The rank `hops` places behind another one in a channel's ring. */
static inline int kl_order_ring_next(const struct kl_order_wires *w, int channel, int rank, int hops)
{
    int at = w->place[(size_t)channel * (size_t)w->nranks + (size_t)rank];

    return kl_order_ring(w, channel)[(at + hops) % w->nranks];
}

static inline const struct kl_tree_neighbours *kl_order_tree(const struct kl_order_wires *w, int channel)
{
    return &w->tree[(size_t)channel * (size_t)w->nranks];
}

#endif
