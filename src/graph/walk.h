/* SPDX-License-Identifier: Apache-2.0 */
/**
 * walk.h - one round of a search: all ways to lay channels at one bandwidth, within a budget of visited GPUs.
 *
 * The walk keeps two graphs. `work` carries the wishes of the round (pattern, bandwidths, path types, ...) and the channels being
 * laid; `best` is the best solution so far, a whole copy of `work` taken when it won. In both, orders hold GPU indices and NET
 * indices instead of ranks and ids.
 *
 * Source: the graph specification, 5.
 */
#ifndef KL_GRAPH_WALK_H
#define KL_GRAPH_WALK_H

#include "graph/graph.h"
#include "graph/routes.h"

struct kl_net_lists;

struct kl_walk {
    struct kl_routes *routes;
    struct kl_graph *work, *best;
    int budget; /* steps left; 0: used up, KL_WALK_PERFECT: nothing can be better */
    int steps;  /* taken in this round */
    int stored; /* channels of the last solution stored in this round */

    uint64_t *used; /* by channel, bits of the GPUs in it */
    int used_words; /* per channel */
    int32_t *candidate;
    int ncandidates, max_candidates;

    struct kl_net_lists *lists;
    unsigned version;   /* changes when a round leaves other bandwidths than it found: rounding */
    float *before;      /* link_bw at its beginning */
    uint32_t *refusals; /* by link, in this round */
    bool nomem;
};

enum { KL_WALK_PERFECT = -1 };

ncclResult_t kl_walk_create(struct kl_routes *routes, int max_channels, struct kl_walk **walk);
void kl_walk_free(struct kl_walk *walk);

/** Search with work's wishes and `budget` steps; the result is in `best`, what is left of the budget in `budget`. */
ncclResult_t kl_walk_round(struct kl_walk *walk, int budget);

#endif
