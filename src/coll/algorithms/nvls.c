/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls.c - the algorithm NVLS, where all ranks can map the same memory: no edges, but memory for each channel.
 */
#include "coll/algorithms/algorithms.h"
#include "coll/shm/nvls_group.h"

static ncclResult_t link_nvls(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    return kl_nvls_group_link(graph, cs, channel, false, edges);
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *edges, const struct kl_channel_work *s)
{
    (void)a;
    kl_nvls_group_start(op, edges, NULL, s);
}

static enum kl_progress progress(void *op, ncclResult_t *rc)
{
    return kl_nvls_op_progress(op, rc);
}

static int blocked_on(void *op, bool gone)
{
    return gone ? kl_nvls_op_departed_rank(op) : kl_nvls_op_blocked_on(op);
}

const struct kl_algorithm kl_algorithm_nvls = {
    .algo = KL_ALGO_NVLS,
    .funcs = 1u << KL_FUNC_ALL_REDUCE | 1u << KL_FUNC_ALL_GATHER | 1u << KL_FUNC_REDUCE_SCATTER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_ALL,
    .op_bytes = sizeof(struct kl_nvls_op),
    .link = link_nvls,
    .unlink = kl_nvls_group_unlink,
    .start = start,
    .progress = progress,
    .blocked_on = blocked_on,
};
