/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring_op.h - a resumable operation on a ring: carries out a schedule (schedule.h) over the connectors of a channel.
 *
 * The operation allocates nothing and never blocks: progress does every hop whose data and room are there, and returns.
 * A hop is one fifo step, so it is either done or not begun. Where both ends share an address space, large chunks that
 * stay where they are for the rest of the operation are lent instead of copied (kl_fifo_publish_direct); the operation
 * is then complete once the last of them has been read.
 *
 * Errors:  ncclInvalidUsage when the predecessor's chunk has another size: the ranks disagree on count or type.
 * Threads: one at a time.
 */
#ifndef KL_COLL_RING_OP_H
#define KL_COLL_RING_OP_H

#include "channel/channel.h"
#include "coll/schedule.h"
#include "device/host/redop.h"
#include "device/host/stream.h"

#include <stdint.h>

/** What to do, in terms of one rank. */
struct kl_ring_task {
    const struct kl_schedule *schedule;
    const struct kl_redop *redop; /* NULL where nothing is reduced */
    const void *send;
    void *recv;
    size_t count;      /* elements of the buffer, or of one part of it (KL_LAYOUT_PARTS) */
    size_t first, end; /* the share of them that this channel moves */
    size_t elem_bytes;
    int root; /* index in the ring */
};

struct kl_ring_op {
    struct kl_ring *ring;
    struct kl_ring_task task;
    struct kl_position at;
    size_t most;   /* elements of the largest chunk */
    size_t first;  /* element at which the current loop begins */
    size_t chunk;  /* elements of a chunk in it */
    int hop, hops; /* next, and in all, of the current loop */
};

/** Begin. The share may be empty. */
void kl_ring_op_start(struct kl_ring_op *op, struct kl_ring *ring, const struct kl_ring_task *task);

/** Go on; DONE when this rank's part is complete and its buffers may be reused. *rc is set on failure, with DONE. */
enum kl_progress kl_ring_op_progress(struct kl_ring_op *op, ncclResult_t *rc);

/** The neighbour that a stalled operation waits for in vain because it has freed its communicator; -1 if there is none. */
int kl_ring_op_waits_in_vain(struct kl_ring_op *op);

#endif
