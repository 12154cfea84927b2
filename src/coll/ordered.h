/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ordered.h - reductions whose bits depend on the data and the number of ranks alone: element by element, the
 * contribution of rank 0, then of rank 1, and so on, as one thread would add them up. There are two ways:
 *
 *      direct   every element has an owner, which receives all contributions and combines them in order. One step, or
 *               two where others want the result; up to KL_ORDERED_DIRECT_RANKS.
 *      ring     partial results travel 0 -> 1 -> ... -> n-1, where they are complete, and on to the ranks 0, 1, ... that
 *               want them.
 *
 * Edges of the direct way: all other ranks in their order. Of the ring: edge 0 is the previous rank, or the next one.
 */
#ifndef KL_COLL_ORDERED_H
#define KL_COLL_ORDERED_H

#include "coll/schedule.h"
#include "graph/tuning.h"
#include "include/nccl.h"

enum { KL_ORDERED_DIRECT_RANKS = KL_EDGES_MAX + 1 };

/** The way of so many ranks. */
static inline enum kl_algo kl_ordered_algo(int nranks)
{
    return nranks <= KL_ORDERED_DIRECT_RANKS ? KL_ALGO_ORDERED : KL_ALGO_ORDERED_RING;
}

extern const struct kl_schedule kl_allreduce_ordered, kl_reduce_ordered, kl_reducescatter_ordered;
extern const struct kl_schedule kl_allreduce_ordered_ring, kl_reduce_ordered_ring, kl_reducescatter_ordered_ring;

/** The edge between `rank` and another one, of the direct way. */
static inline int kl_ordered_edge(int rank, int peer)
{
    return peer - (peer > rank);
}

/** Does the order of a reduction change its bits? `scaled`: contributions are multiplied by numbers of the ranks. */
bool kl_ordered_matters(ncclDataType_t type, ncclRedOp_t op, bool scaled);

#endif
