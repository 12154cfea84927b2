/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls_group.h - the ranks that share the memory of NVLS on a channel, and the heads among them: for the files of
 * algorithms.
 *
 * Heads have the same order in all nodes: the i-th of one and the i-th of another work on the same slices.
 */
#ifndef KL_COLL_SHM_NVLS_GROUP_H
#define KL_COLL_SHM_NVLS_GROUP_H

#include "coll/pipeline/algorithm.h"
#include "coll/shm/nvls_op.h"

struct kl_nvls_group {
    struct kl_nvls nvls;
    int n, own, most; /* number of ranks, this rank's index, and the size of the largest group */
    int32_t *ranks;   /* n: their numbers in the communicator, ascending */
    int nheads;
    int *heads;                      /* n: indices of the ranks that add up in an all-reduce */
    struct kl_collnet_link *network; /* NULL; with CollNet, a head's link to the heads of other nodes: not owned */
};

/** All ranks of the communicator, or (`node`) the ranks of this rank's node. The group is edges->own, also after a
 * failure. */
ncclResult_t kl_nvls_group_link(const struct kl_connect *graph, struct kl_connections *cs, int channel, bool node,
                                struct kl_edges *edges);
void kl_nvls_group_unlink(struct kl_edges *edges);

/** Begin a share of an operation. `tree`: as in struct kl_nvls_task. */
void kl_nvls_group_start(struct kl_nvls_op *op, struct kl_edges *edges, struct kl_edges *tree,
                         const struct kl_channel_work *share);

#endif
