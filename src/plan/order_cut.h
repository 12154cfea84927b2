/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_cut.h - how the collectives of a group are cut into parts of channels and chunks, as a release of NCCL does it.
 *
 * All operations of a group have one function, type and reduction. Pure arithmetic, the same on every rank.
 *
 * Units:   counts in elements: of a rank's block for all-gather and reduce-scatter, else of the buffer. Chunks in bytes.
 * Errors:  as kl_tuning_choose; ncclInvalidArgument for more than KL_ORDER_GROUP operations.
 * Threads: const.
 * Source:  the specification of the order of summation, 1; the graph specification, 12.
 */
#ifndef KL_PLAN_ORDER_CUT_H
#define KL_PLAN_ORDER_CUT_H

#include "graph/connect.h"
#include "graph/tuning.h"

enum { KL_ORDER_GROUP = 64 };

/** Everything that decides, but for the tuning model. */
struct kl_order_rules {
    int nccl; /* the release that is followed */
    int nranks, nnodes;
    int nchannels, nvls_channels;
    int nvls_heads, collnet_heads;
    int direct_depth, chain_depth;  /* of CollNetDirect and CollNetChain */
    int64_t nvls_chunk, tree_chunk; /* bytes: of NVLS, and the most of NVLSTree; 0: the release's */
    bool nvls_slow;                 /* NVLS of several nodes is modelled below 150 GB/s */
    bool nvls_registered;           /* NVLS works in registered buffers */
    int64_t buffer[KL_PROTOS];      /* bytes */
};

#define KL_ORDER_BUFFERS                                                                                               \
    {                                                                                                                  \
        524288, 4915200, 4194304                                                                                       \
    } /* LL, LL128, Simple */

/** Consecutive elements that one channel works on. */
struct kl_order_part {
    int channel;
    int64_t first, count;
    int64_t chunk; /* bytes */
};

/** One operation of the group. */
struct kl_order_op {
    int64_t count;
    int asked;                      /* its place in the group, as it was called */
    struct kl_tuning_choice choice; /* `nchannels`: at most */
    int first_channel, last_channel;
    int64_t chunk; /* bytes; of CollNetDirect, CollNetChain, and NVLS over several nodes, which have no parts; else 0 */
    int nparts;
    struct kl_order_part part[KL_MAX_CHANNELS];
};

struct kl_order_group {
    int func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int nops;
    struct kl_order_op *ops; /* in the order in which they are scheduled */
};

/**
 * Sort and choose. `forced` is used for every operation if it is not NULL; else `tuning` chooses, and operations of
 * like size share a choice. Free with kl_order_group_fini.
 */
ncclResult_t kl_order_group_choose(const struct kl_order_rules *rules, const struct kl_tuning *tuning,
                                   const struct kl_tuning_choice *forced, const int64_t *counts, int n,
                                   struct kl_order_group *group);
void kl_order_group_fini(struct kl_order_group *group);

/** Cut all operations, which have their choices. */
void kl_order_group_cut(const struct kl_order_rules *rules, struct kl_order_group *group);

/** How often a byte of a buffer, or of a block, crosses a channel. */
int64_t kl_order_traffic(int func, int nranks);

/** Do all channels work on the whole operation, instead of parts? */
bool kl_order_whole(int algo, int nnodes);

#endif
