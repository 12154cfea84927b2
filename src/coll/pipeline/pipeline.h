/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline.h - runs any schedule over the connectors of a channel: a resumable operation.
 *
 * It allocates nothing and never blocks: progress does every hop with data and room, in all lanes, and returns. A hop
 * is one step on each of its edges, so it is either done or not begun. Where both ends share an address space, large
 * chunks that stay in place for the rest of the operation are read there instead of copied (kl_fifo_publish_direct); the
 * operation is then complete once the last of them has been read.
 *
 * Protocols:  Simple uses slots, LL and LL128 flagged lines (transport/ll.h). All ranks agree on slots and lines, so a
 *             chunk fits into one step everywhere.
 * Errors:     ncclInvalidUsage when a chunk is of another call than this rank's (its signature), or has another size than this
 *             rank expects: the ranks have different settings.
 * Threads:    one at a time.
 */
#ifndef KL_COLL_PIPELINE_PIPELINE_H
#define KL_COLL_PIPELINE_PIPELINE_H

#include "coll/pipeline/algorithm.h"
#include "transport/ll.h"

/** One chunk received in lines, and one sent in them. */
#define KL_SCRATCH_BYTES (2 * (KL_LL_BYTES + 64))

/** A hop with its addresses. */
struct kl_pipeline_move {
    struct kl_hop hop;
    const char *own;
    char *result;
    size_t count, bytes;
    bool lines; /* it travels in flagged lines: LL and LL128, but for chunks that fit into the line of a step */
};

struct kl_lane {
    size_t first, chunk; /* element at which the current loop begins; elements of a chunk in it */
    int hop, hops;       /* next, and in all, of a loop */
    bool prepared;       /* `move` is the next hop, waiting for its edges */
    struct kl_pipeline_move move;
};

struct kl_pipeline {
    const struct kl_schedule *schedule;
    struct kl_edges *edges;
    struct kl_position position;
    const struct kl_channel_work *share;
    size_t most; /* elements of the largest chunk */
    bool lines;  /* LL or LL128 */
    bool begun;  /* it has been progressed */
    struct kl_lane lane[KL_LANES_MAX];
};

/** Chunks that an operation receives and sends, by edge. */
struct kl_pipeline_steps {
    int recv[KL_EDGES_MAX], send[KL_EDGES_MAX];
};

/** Count them. `op`: started, not progressed. It takes as long as there are hops. */
void kl_pipeline_count(const void *op, struct kl_pipeline_steps *steps);

void kl_pipeline_start(const struct kl_algorithm *a, void *op, struct kl_edges *edges,
                       const struct kl_channel_work *share);
enum kl_progress kl_pipeline_progress(void *op, ncclResult_t *rc);
bool kl_pipeline_sleep_on(void *op);
int kl_pipeline_blocked_on(void *op, bool gone);

/** In the row of an algorithm that consists of schedules. */
#define KL_BY_PIPELINE                                                                                                 \
    .op_bytes = sizeof(struct kl_pipeline), .start = kl_pipeline_start, .progress = kl_pipeline_progress,              \
    .sleep_on = kl_pipeline_sleep_on, .blocked_on = kl_pipeline_blocked_on

#endif
