/* SPDX-License-Identifier: Apache-2.0 */
/**
 * segments.h - the routes of a finished graph's channels through its machine, as the search placed them (graph/stages.h).
 *
 * A channel is made of *segments*: from the entry NET to the first GPU, from GPU to GPU, back to the network.
 *
 *     ring:  NET/0 -> GPU 0 -> GPU 7 -> ... -> GPU 1 -> NET/0      9 segments of 8 GPUs
 *
 * Errors:  ncclSystemError when memory is short.
 * Threads: a struct kl_route_segments belongs to one thread; routes and graph are only read, and must outlive it.
 */
#ifndef KL_GRAPH_SEGMENTS_H
#define KL_GRAPH_SEGMENTS_H

#include "graph/stages.h"

struct kl_route_segment {
    int from, to; /* nodes */
    const struct kl_route *route;
    enum kl_charge charge;
};

struct kl_route_segments {
    const struct kl_routes *routes;
    const struct kl_graph *graph;
    struct kl_stage *stage;
    struct kl_route_segment *segment; /* of the last channel, in order */
    int n;
};

ncclResult_t kl_route_segments_init(struct kl_route_segments *segments, const struct kl_routes *routes,
                                    const struct kl_graph *graph);
void kl_route_segments_fini(struct kl_route_segments *segments);

/** The segments of a channel. NETs, GPUs and an NVSwitch that a graph file invented end or shorten it. */
void kl_route_segments_look(struct kl_route_segments *segments, int channel);

#endif
