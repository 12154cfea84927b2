/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring.c - the algorithm Ring: one edge from the predecessor, one to the successor. A reduce is a chain; it
 * orders ranks that share CPUs one after the other.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

#include <stdlib.h>

static int index_of(const int *order, int nranks, int rank)
{
    int i = 0;

    while (i < nranks && order[i] != rank) i++;
    return i;
}

typedef ncclResult_t (*order_fn)(const struct kl_connect *graph, int channel, int first, int32_t *order);

static ncclResult_t link_in_order(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                  struct kl_edges *edges, order_fn order_of)
{
    int n = graph->ranks.nranks;
    int *order = malloc((size_t)n * sizeof *order);

    if (!order) return KL_NOMEM("a ring");
    edges->order = order;
    edges->position = (struct kl_position){.nranks = n, .rank = graph->rank, .order = order};
    KL_TRY(order_of(graph, channel, graph->rank, order));
    edges->position.index = (n - index_of(order, n, 0)) % n;
    KL_TRY(kl_edges_recv(edges, cs, channel, 0, order[n - 1]));
    return kl_edges_send(edges, cs, channel, 0, order[1 % n]);
}

static ncclResult_t link_ring(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    return link_in_order(graph, cs, channel, edges, kl_connect_ring_order);
}

static ncclResult_t link_chain(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_edges *edges)
{
    return link_in_order(graph, cs, channel, edges, kl_connect_chain_order);
}

const struct kl_algorithm kl_algorithm_ring = {
    .algo = KL_ALGO_RING,
    .funcs = ((1u << KL_FUNCS) - 1) & ~(1u << KL_FUNC_REDUCE),
    .protos = (1u << KL_PROTOS) - 1,
    .schedule =
        {
            [KL_FUNC_ALL_REDUCE] = &kl_allreduce_ring,
            [KL_FUNC_ALL_GATHER] = &kl_allgather_ring,
            [KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_ring,
            [KL_FUNC_BROADCAST] = &kl_broadcast_ring,
        },
    .link = link_ring,
    KL_BY_PIPELINE,
};

const struct kl_algorithm kl_algorithm_ring_chain = {
    .algo = KL_ALGO_RING,
    .funcs = 1u << KL_FUNC_REDUCE,
    .protos = (1u << KL_PROTOS) - 1,
    .schedule = {[KL_FUNC_REDUCE] = &kl_reduce_ring},
    .link = link_chain,
    KL_BY_PIPELINE,
};
