/* SPDX-License-Identifier: Apache-2.0 */
/**
 * backtrack.h - one round of a search: all placements of channels at one bandwidth, within a budget of visited GPUs.
 *
 * Two graphs are kept. `work` has the limits of the round (pattern, bandwidths, path types, ...) and the channels being
 * laid; `best` is the best solution so far, a whole copy of `work` taken when it won. In both, orders hold GPU indices and NET
 * indices instead of ranks and ids.
 *
 * How a channel is laid is written down once per round as a list of *stages*: go to another GPU, return to the network,
 * close the ring, ... Laying it is backtracking over the stages: each takes bandwidth along one of its candidates' routes, and gives it
 * back before it tries the next. A finished channel starts the next one. So the depth of calls is the number of channels.
 *
 * Source: the graph specification, 5.
 */
#ifndef KL_GRAPH_BACKTRACK_H
#define KL_GRAPH_BACKTRACK_H

#include "graph/graph.h"
#include "graph/order.h"
#include "graph/reserve.h"

enum { KL_BUDGET_PERFECT = -1 }; /* the budget after a solution that cannot be improved */

struct kl_net_lists;
struct kl_channel_placement;
struct kl_stage;

struct kl_backtrack {
    struct kl_routes *routes;
    struct kl_graph *work, *best;
    int budget; /* steps left; 0: used up, KL_BUDGET_PERFECT: no need of more */
    int steps;  /* taken in this round */
    int stored; /* channels of the last solution stored in this round */
    int most;   /* no larger set of channels was, or would have been, completed in this round */
    int bound;  /* no more channels can be laid in this round; -1: not known */

    /* Derived from the limits of this round. */
    struct kl_stage *stage;
    float head_share; /* of a channel's bandwidth: KL_CHARGE_HEADS */
    int entry_bw;     /* whole GB/s that a channel takes from a port */
    bool tree;        /* the way back must be as good */

    struct kl_reserve reserve;
    struct kl_channel_placement *placement; /* by channel */
    int max_channels;
    int64_t *key; /* room for sorting candidates */
    struct kl_orders orders;
    struct kl_net_lists *lists;

    unsigned version; /* changes when rounding errors of a round change bandwidths */
    int32_t *before;  /* routes->level when the round began */
    bool nomem;
    bool thorough; /* take every step, even needless ones */
};

ncclResult_t kl_backtrack_create(struct kl_routes *routes, int max_channels, struct kl_backtrack **backtrack);
void kl_backtrack_free(struct kl_backtrack *bt);

/** Search within work's limits and `budget` steps; `best` receives the result, `budget` the steps that are left. */
ncclResult_t kl_backtrack_round(struct kl_backtrack *bt, int budget);

#endif
