/* SPDX-License-Identifier: Apache-2.0 */
/** ordered.c - reductions in the order of ranks: directly where each rank has few edges to all others, else
 * along a ring. */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"
#include "coll/schedule/ordered.h"

bool kl_ordered_is_needed(ncclDataType_t type, ncclRedOp_t op, bool scaled)
{
    bool floats = type == ncclFloat16 || type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16 ||
                  type == ncclFloat8e4m3 || type == ncclFloat8e5m2;

    return floats && (scaled || (op != ncclMin && op != ncclMax));
}

static ncclResult_t link_all(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                             struct kl_edges *edges)
{
    int n = graph->ranks.nranks, me = graph->rank;

    edges->position = (struct kl_position){.nranks = n, .rank = me};
    for (int i = 1; i < n; i++) {
        int peer = kl_wrap(me + i, n), edge = kl_ordered_edge(me, peer);
        KL_TRY(kl_edges_recv(edges, cs, channel, edge, peer));
        KL_TRY(kl_edges_send(edges, cs, channel, edge, peer));
    }
    return ncclSuccess;
}

static ncclResult_t link_ring(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    int n = graph->ranks.nranks, me = graph->rank;

    edges->position = (struct kl_position){.nranks = n, .rank = me};
    KL_TRY(kl_edges_recv(edges, cs, channel, 0, kl_wrap(me - 1, n)));
    return kl_edges_send(edges, cs, channel, 0, kl_wrap(me + 1, n));
}

enum { FUNCS = 1u << KL_FUNC_ALL_REDUCE | 1u << KL_FUNC_REDUCE | 1u << KL_FUNC_REDUCE_SCATTER };

const struct kl_algorithm kl_algorithm_ordered = {
    .algo = KL_ALGO_ORDERED,
    .funcs = FUNCS,
    .protos = 1u << KL_PROTO_SIMPLE, /* an owner combines all contributions at once */
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_ordered,
                 [KL_FUNC_REDUCE] = &kl_reduce_ordered,
                 [KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_ordered},
    .link = link_all,
    KL_BY_PIPELINE,
};

const struct kl_algorithm kl_algorithm_ordered_ring = {
    .algo = KL_ALGO_ORDERED_RING,
    .funcs = FUNCS,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_ordered_ring,
                 [KL_FUNC_REDUCE] = &kl_reduce_ordered_ring,
                 [KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_ordered_ring},
    .link = link_ring,
    KL_BY_PIPELINE,
};
