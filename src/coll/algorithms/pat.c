/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pat.c - the algorithm PAT: edge k joins ranks at distance 2^k. All-gather and reduce-scatter use the edges in opposite
 * directions, so each has a row of its own.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

static ncclResult_t find_at_distances(const struct kl_neighbours_request *q, int direction, struct kl_neighbours *to)
{
    const int n = q->graph->ranks.nranks;

    *to = (struct kl_neighbours){.position = {.nranks = n, .rank = q->rank, .steps = q->steps}};
    for (int k = 0; 1 << k < n; k++) {
        const int far = direction * (1 << k);
        to->recv[k] = kl_wrap(q->rank + far, n);
        to->send[k] = kl_wrap(q->rank - far, n);
        to->nrecv = to->nsend = k + 1;
    }
    return ncclSuccess;
}

static ncclResult_t find_for_gather(const struct kl_neighbours_request *q, struct kl_neighbours *to)
{
    return find_at_distances(q, 1, to);
}

static ncclResult_t find_for_scatter(const struct kl_neighbours_request *q, struct kl_neighbours *to)
{
    return find_at_distances(q, -1, to);
}

static ncclResult_t link_gather(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                struct kl_edges *edges)
{
    return kl_edges_link(&kl_algorithm_pat_gather, graph, cs, channel, edges);
}

static ncclResult_t link_scatter(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                 struct kl_edges *edges)
{
    return kl_edges_link(&kl_algorithm_pat_scatter, graph, cs, channel, edges);
}

const struct kl_algorithm kl_algorithm_pat_gather = {
    .algo = KL_ALGO_PAT,
    .funcs = 1u << KL_FUNC_ALL_GATHER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_ALL_GATHER] = &kl_allgather_pat},
    .find = find_for_gather,
    .link = link_gather,
    KL_BY_PIPELINE,
};

const struct kl_algorithm kl_algorithm_pat_scatter = {
    .algo = KL_ALGO_PAT,
    .funcs = 1u << KL_FUNC_REDUCE_SCATTER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_pat},
    .find = find_for_scatter,
    .link = link_scatter,
    KL_BY_PIPELINE,
};
