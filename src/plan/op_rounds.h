/* SPDX-License-Identifier: Apache-2.0 */
/**
 * op_rounds.h - the rounds and channels of an operation made of sends and receives, as rank 0 sees it.
 *
 * Threads: const once made.
 */
#ifndef KL_PLAN_OP_ROUNDS_H
#define KL_PLAN_OP_ROUNDS_H

#include "plan/plan.h"

/** The pairs of ranks that send and receive. Rank 0 is the root. */
enum kl_op_peers {
    KL_PEERS_ALL,     /* all ranks to all ranks */
    KL_PEERS_NEXT,    /* every rank to the next one */
    KL_PEERS_TO_ROOT, /* all ranks to the root */
    KL_PEERS_OF_ROOT, /* the root to all ranks */
    KL_PEERS_CUBE     /* each rank with the ranks that differ in one bit */
};

/** Ranks, -1 where there is none in this round. */
struct kl_op_round {
    int round, send, recv;
    int base; /* of its channels: kl_p2p_channel */
};

struct kl_op_rounds {
    struct kl_p2p_channels channels;
    struct kl_op_round *round; /* rounds in which rank 0 sends or receives */
    int nrounds;
    bool by_node; /* rounds go over nodes, and in each over its ranks */
};

/** Free with kl_op_rounds_fini. ncclInvalidUsage for a cube of a number of ranks that is no power of two. */
ncclResult_t kl_op_rounds_find(enum kl_op_peers peers, const struct kl_plan *plan, struct kl_op_rounds *rounds);
void kl_op_rounds_fini(struct kl_op_rounds *rounds);

#endif
