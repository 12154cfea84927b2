/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_ranges.h - the sum of each element of an operation, and the messages between ranks.
 *
 * Units:   elements, bytes. Elements of reduce-scatter count within a rank's block.
 * Errors:  ncclSystemError when memory is short.
 * Threads: one at a time: they share `sums`.
 * Source:  the specification of the order of summation, 1.2, 2 and 6.
 */
#ifndef KL_PLAN_ORDER_RANGES_H
#define KL_PLAN_ORDER_RANGES_H

#include "plan/order_cut.h"
#include "plan/order_sums.h"

/**
 * Elements [first, first + count) of a channel have one sum; head: of NVLS, the one that reduces them, else -1.
 * end: the rank that completes the sum; -1: a switch or the network does, or each of two ranks some chunks.
 */
struct kl_order_range {
    int64_t first, count;
    int channel, block; /* block: the rank of a reduce-scatter's block, else 0 */
    int sum, head, end;
};

struct kl_order_ranges {
    struct kl_order_range *range;
    int n, room;
};

/**
 * Ascending within a block. `root` is the root of a reduce. Sums of switches and networks are leaves. Free `range` also after
 * a failure.
 */
ncclResult_t kl_order_ranges_of(const struct kl_order_rules *rules, const struct kl_order_wires *wires,
                                const struct kl_order_group *group, const struct kl_order_op *op, int root,
                                struct kl_order_sums *sums, struct kl_order_ranges *ranges);

/** The sum that an algorithm makes on a channel, completed by the rank `end`, which only rings and PAT ask for. */
int kl_order_sum_at(const struct kl_order_rules *rules, const struct kl_order_wires *wires, struct kl_order_sums *sums,
                    int algo, int channel, int end);

/** One rank to another on a channel: elements, and messages with their bytes on the wire. */
struct kl_order_sent {
    int from, to, channel;
    int64_t elements, wire, messages;
};

struct kl_order_sents {
    struct kl_order_sent *sent;
    int n, room;
};

/** By channel and sender. Without data that go through switches within a node, and into networks that reduce. */
ncclResult_t kl_order_sent_of(const struct kl_order_rules *rules, const struct kl_order_wires *wires,
                              const struct kl_order_group *group, const struct kl_order_op *op, int root,
                              struct kl_order_sents *sents);

/* ---- chunks, for both ---- */

/** Calls `visit` for each chunk of a part: its number in its block of chunks, first element within the operation, and count. */
typedef ncclResult_t kl_order_visit(void *ctx, int chunk, int64_t first, int64_t count);
ncclResult_t kl_order_chunks(const struct kl_order_rules *rules, const struct kl_order_group *group,
                             const struct kl_order_op *op, const struct kl_order_part *part, kl_order_visit *visit,
                             void *ctx);

#endif
