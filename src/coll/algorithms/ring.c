/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring.c - the algorithm Ring: one edge from the predecessor, one to the successor. A reduce is a chain; it
 * orders ranks that share CPUs one after the other.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

static int index_of(const int *order, int nranks, int rank)
{
    int i = 0;

    while (i < nranks && order[i] != rank) i++;
    return i;
}

typedef ncclResult_t (*order_fn)(const struct kl_connect *graph, int channel, int first, int32_t *order);

static ncclResult_t find_in_order(const struct kl_neighbours_request *q, struct kl_neighbours *to, order_fn order_of)
{
    const int n = q->graph->ranks.nranks;

    *to = (struct kl_neighbours){.position = {.nranks = n, .rank = q->rank, .order = q->order}, .nrecv = 1, .nsend = 1};
    KL_TRY(order_of(q->graph, q->channel, q->rank, q->order));
    to->position.index = (n - index_of(q->order, n, 0)) % n;
    to->recv[0] = q->order[n - 1];
    to->send[0] = q->order[1 % n];
    return ncclSuccess;
}

static ncclResult_t find_in_ring(const struct kl_neighbours_request *q, struct kl_neighbours *to)
{
    return find_in_order(q, to, kl_connect_ring_order);
}

static ncclResult_t find_in_chain(const struct kl_neighbours_request *q, struct kl_neighbours *to)
{
    return find_in_order(q, to, kl_connect_chain_order);
}

static ncclResult_t link_ring(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    return kl_edges_link(&kl_algorithm_ring, graph, cs, channel, edges);
}

static ncclResult_t link_chain(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_edges *edges)
{
    return kl_edges_link(&kl_algorithm_ring_chain, graph, cs, channel, edges);
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
    .find = find_in_ring,
    .link = link_ring,
    KL_BY_PIPELINE,
};

const struct kl_algorithm kl_algorithm_ring_chain = {
    .algo = KL_ALGO_RING,
    .funcs = 1u << KL_FUNC_REDUCE,
    .protos = (1u << KL_PROTOS) - 1,
    .schedule = {[KL_FUNC_REDUCE] = &kl_reduce_ring},
    .find = find_in_chain,
    .link = link_chain,
    KL_BY_PIPELINE,
};
