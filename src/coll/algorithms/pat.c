/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pat.c - the algorithm PAT: edge k joins ranks at distance 2^k. All-gather and reduce-scatter use the edges in opposite
 * directions, so each has a row of its own.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

static ncclResult_t link_pat(const struct kl_connect *graph, struct kl_connections *cs, int channel, int direction,
                             struct kl_edges *edges)
{
    int n = graph->ranks.nranks, me = graph->rank;

    edges->position = (struct kl_position){.nranks = n, .rank = me, .steps = kl_connections_steps(cs)};
    for (int k = 0; 1 << k < n; k++) {
        int far = direction * (1 << k);
        KL_TRY(kl_edges_recv(edges, cs, channel, k, kl_wrap(me + far, n)));
        KL_TRY(kl_edges_send(edges, cs, channel, k, kl_wrap(me - far, n)));
    }
    return ncclSuccess;
}

static ncclResult_t link_gather(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                struct kl_edges *edges)
{
    return link_pat(graph, cs, channel, 1, edges);
}

static ncclResult_t link_scatter(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                 struct kl_edges *edges)
{
    return link_pat(graph, cs, channel, -1, edges);
}

const struct kl_algorithm kl_algorithm_pat_gather = {
    .algo = KL_ALGO_PAT,
    .funcs = 1u << KL_FUNC_ALL_GATHER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_ALL_GATHER] = &kl_allgather_pat},
    .link = link_gather,
    KL_BY_PIPELINE,
};

const struct kl_algorithm kl_algorithm_pat_scatter = {
    .algo = KL_ALGO_PAT,
    .funcs = 1u << KL_FUNC_REDUCE_SCATTER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_pat},
    .link = link_scatter,
    KL_BY_PIPELINE,
};
