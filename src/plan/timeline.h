/* SPDX-License-Identifier: Apache-2.0 */
/**
 * timeline.h - the load of links over time, while an all-reduce runs over the rings or the trees of a plan.
 *
 * A model of flows. Each edge of each channel carries chunks: a rank of a ring passes on a chunk when it has received
 * it, one of a tree when it has received it from all its children, or from its parent. An edge is as fast as its
 * channel's part of the bandwidth that the graph reserves; flows that meet in a link share it in proportion.
 *
 *     ring of 4: the k-th of 6 chunks needs the (k-1)-th of the predecessor; a chunk is a 4th of the channel's data
 *     tree:      KL_TIMELINE_CHUNKS chunks, up and down at the same time
 *
 * Latencies and the limits of protocols are not counted: the model is about large operations, whose times the links
 * determine. Hosts are alike, so links that are busy at the same times are one row.
 *
 * Units:   bytes, microseconds, percent of a link's bandwidth.
 * Errors:  ncclInvalidUsage where there is nothing to show (one rank, no such graph) or too much (KL_TIMELINE_RANKS);
 *          ncclSystemError when memory is short.
 * Threads: const once made.
 */
#ifndef KL_PLAN_TIMELINE_H
#define KL_PLAN_TIMELINE_H

#include "plan/plan.h"

enum { KL_TIMELINE_BINS = 96, KL_TIMELINE_RANKS = 256, KL_TIMELINE_CHUNKS = 32 };

/** Links that are busy at the same times. */
struct kl_timeline_row {
    int host, domain, link; /* the first of them: a link of the topology of a domain of the plan */
    int like;               /* how many others */
    float mean;             /* percent, over the whole time */
    uint8_t percent[KL_TIMELINE_BINS];
};

struct kl_timeline {
    int graph; /* enum kl_graph_id: ring or tree */
    int64_t bytes;
    double us; /* until the last chunk has arrived */
    struct kl_timeline_row *row;
    int nrows; /* by type of link, and the busiest first */
};

ncclResult_t kl_timeline_create(const struct kl_plan *plan, int graph, int64_t bytes, struct kl_timeline **timeline);
void kl_timeline_free(struct kl_timeline *timeline);

#endif
