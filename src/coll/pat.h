/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pat.h - parallel aggregated trees. Each rank's part has a binomial tree of its own: a rank is at distance s of the part
 * when the part's home is rank + s (modulo nranks), and its parent is at distance s without its lowest bit. All
 * trees are one tree, turned, and edge k connects ranks 2^k apart, whatever the part. For 8 ranks:
 *
 *      distance 0 --+-- 1                      edge 0
 *                   +-- 2 ----- 3              edge 1, edge 0
 *                   +-- 4 --+-- 5              edge 2, edge 0
 *                           +-- 6 ----- 7      edge 2, edge 1, edge 0
 *
 * A loop visits every distance once, in the same order at all ranks: parents before children in an all-gather,
 * backwards in a reduce-scatter. The order is chosen in pat.c.
 *
 * Source: Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations at scale (2025); the graph
 *         specification, 14.5.
 */
#ifndef KL_COLL_PAT_H
#define KL_COLL_PAT_H

#include "coll/schedule.h"

/** The distance at `place` of the order, 0 <= place < nranks. */
int kl_pat_distance(const struct kl_position *p, int place);

/** Edges to the children and to the parent of a rank at this distance; 0 for none. */
uint32_t kl_pat_children(int nranks, int distance);
uint32_t kl_pat_parent(int distance);

#endif
