/* SPDX-License-Identifier: Apache-2.0 */
/**
 * load.h - what the channels of a graph take from the links of its machine.
 *
 * A channel is made of *legs*: from the entry NET to the first GPU, from GPU to GPU, back to the network. A leg follows
 * the path between its ends and takes from every link what the search reserves for it: its bandwidth, more where a host
 * bridge costs more, and a share of the opposite direction where there are acknowledgements (routes.h).
 *
 *     ring:  NET/0 -> GPU 0 -> GPU 7 -> ... -> GPU 1 -> NET/0      9 legs of 8 GPUs
 *
 * Loads are plain sums. The search rounds what is left of a link to three decimals, so its own account may differ by
 * that much.
 *
 * Units:   GB/s, one direction of a link.
 * Errors:  ncclSystemError when memory is short.
 * Threads: pure.
 * Source:  the graph specification, 5.1 and 5.3 to 5.6.
 */
#ifndef KL_GRAPH_LOAD_H
#define KL_GRAPH_LOAD_H

#include "graph/graph.h"
#include "graph/routes.h"

struct kl_leg {
    int from, to; /* nodes */
    float bw;     /* GB/s */
    const struct kl_route *route;
};

/** Legs that a channel of `ngpus` GPUs has at most. */
static inline size_t kl_max_legs(int ngpus)
{
    return 2 * (size_t)ngpus + 3;
}

/** The legs of one channel, in order; `leg` holds kl_max_legs(graph->ngpus). Returns how many. */
int kl_graph_legs(const struct kl_routes *routes, const struct kl_graph *graph, int channel, struct kl_leg *leg);

/** Add what a leg takes to `used`, which holds topo->nlinks entries. */
void kl_load_leg(const struct kl_routes *routes, const struct kl_leg *leg, double *used);

/** Add what all channels of a graph take to `used`, which holds topo->nlinks entries. */
ncclResult_t kl_graph_load(const struct kl_topo *topo, const struct kl_graph *graph, double *used);

#endif
