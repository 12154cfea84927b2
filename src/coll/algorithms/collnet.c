/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet.c - the algorithms CollNetChain and CollNetDirect: the ranks of a node reduce to heads, which meet
 * in a network that reduces (net/collnet.h). To a head the network is two more edges.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/schedule/direct.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

#include <stdlib.h>

static ncclResult_t meet(struct kl_edges *edges, const struct kl_connect *graph, struct kl_connections *cs,
                         const struct kl_network_edge *meeting)
{
    struct kl_collnet_link *link;

    KL_TRY(kl_edges_join_network(edges, graph, cs, meeting, &link));
    edges->own = link;
    return ncclSuccess;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *edges, const struct kl_channel_work *share)
{
    static const enum kl_collnet_what what[KL_FUNCS] = {
        [KL_FUNC_ALL_REDUCE] = KL_COLLNET_ALL_REDUCE,
        [KL_FUNC_ALL_GATHER] = KL_COLLNET_ALL_GATHER,
        [KL_FUNC_REDUCE_SCATTER] = KL_COLLNET_REDUCE_SCATTER,
    };
    const struct kl_collnet_op redop = {.type = share->type, .op = share->op};

    if (edges->own) kl_collnet_link_begin(edges->own, what[share->func], redop, share->elem_bytes, share->signature);
    kl_pipeline_start(a, op, edges, share);
}

/* ---- chain ---- */

static ncclResult_t link_chain(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_edges *edges)
{
    const struct kl_collnet_links c = kl_connect_collnet(graph, channel, graph->rank);
    const bool head = c.chain_up == graph->ranks.nranks;
    const struct kl_network_edge meeting = {.use = KL_EDGE_COLLNET_CHAIN,
                                            .channel = channel,
                                            .edge = KL_TREE_UP,
                                            .head = kl_connect_chain_head,
                                            .of = channel};

    edges->position = (struct kl_position){
        .nranks = graph->ranks.nranks, .rank = graph->rank, .ndown = c.chain_down >= 0, .up = 1, .head = head ? 0 : -1};
    KL_TRY(kl_edges_recv(edges, cs, channel, 0, c.chain_down));
    KL_TRY(kl_edges_send(edges, cs, channel, 0, c.chain_down));
    if (head) return meet(edges, graph, cs, &meeting);
    KL_TRY(kl_edges_recv(edges, cs, channel, KL_TREE_UP, c.chain_up));
    return kl_edges_send(edges, cs, channel, KL_TREE_UP, c.chain_up);
}

const struct kl_algorithm kl_algorithm_chain = {
    .algo = KL_ALGO_COLLNET_CHAIN,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = 1u << KL_PROTO_SIMPLE,
    .unsigned_data = true,
    .op_bytes = sizeof(struct kl_pipeline),
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_chain},
    .link = link_chain,
    .start = start,
    .progress = kl_pipeline_progress,
    .blocked_on = kl_pipeline_blocked_on,
};

/* ---- direct ---- */

enum { MOST_LOCAL = KL_COLLNET_ARITY + 1 };

/* All ranks by head and node, where each is a head. */
static ncclResult_t list_ranks(const struct kl_connect *graph, struct kl_edges *edges)
{
    int nheads = edges->position.nheads, nnodes = graph->nodes.nnodes;

    if (nheads * nnodes != graph->ranks.nranks) return ncclSuccess;
    edges->order = malloc((size_t)graph->ranks.nranks * sizeof *edges->order);
    if (!edges->order) return KL_NOMEM("heads of CollNet");
    for (int h = 0; h < nheads; h++)
        for (int node = 0; node < nnodes; node++)
            edges->order[h * nnodes + node] = kl_connect_direct_head(graph, h, node);
    edges->position.order = edges->order;
    return ncclSuccess;
}

static ncclResult_t link_to_heads(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                  const struct kl_collnet_links *c, struct kl_edges *edges)
{
    int node = graph->nodes.of_rank[graph->rank];

    for (int h = 0; h < c->nheads; h++) {
        int head = h == c->head ? -1 : kl_connect_direct_head(graph, h, node);
        KL_TRY(kl_edges_recv(edges, cs, channel, h, head));
        KL_TRY(kl_edges_send_scatter(edges, cs, channel, h, head));
    }
    return ncclSuccess;
}

static ncclResult_t link_head(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              const struct kl_collnet_links *c, struct kl_edges *edges)
{
    const struct kl_network_edge meeting = {.use = KL_EDGE_COLLNET_DIRECT,
                                            .channel = channel,
                                            .edge = KL_DIRECT_NET,
                                            .head = kl_connect_direct_head,
                                            .of = c->head};

    KL_TRY(meet(edges, graph, cs, &meeting));
    for (int i = 0; i < c->ndown; i++) {
        KL_TRY(kl_edges_recv_scatter(edges, cs, channel, KL_DIRECT_DOWN + i, c->down[i]));
        KL_TRY(kl_edges_send(edges, cs, channel, KL_DIRECT_DOWN + i, c->down[i]));
    }
    return ncclSuccess;
}

/* A node with more ranks than edges never chooses it. */
static ncclResult_t link_direct(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                struct kl_edges *edges)
{
    const struct kl_collnet_links c = kl_connect_collnet(graph, channel, graph->rank);

    edges->position = (struct kl_position){.nranks = graph->ranks.nranks,
                                           .rank = graph->rank,
                                           .ndown = c.ndown,
                                           .head = c.head,
                                           .nheads = c.nheads,
                                           .nnodes = graph->nodes.nnodes,
                                           .shift = c.shift};
    if (graph->nodes.max_local > MOST_LOCAL || !c.nheads) return ncclSuccess;
    KL_TRY(list_ranks(graph, edges));
    KL_TRY(link_to_heads(graph, cs, channel, &c, edges));
    return c.head < 0 ? ncclSuccess : link_head(graph, cs, channel, &c, edges);
}

const struct kl_algorithm kl_algorithm_direct = {
    .algo = KL_ALGO_COLLNET_DIRECT,
    .funcs = 1u << KL_FUNC_ALL_REDUCE | 1u << KL_FUNC_ALL_GATHER | 1u << KL_FUNC_REDUCE_SCATTER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .unsigned_data = true,
    .op_bytes = sizeof(struct kl_pipeline),
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_direct,
                 [KL_FUNC_ALL_GATHER] = &kl_allgather_direct,
                 [KL_FUNC_REDUCE_SCATTER] = &kl_reducescatter_direct},
    .link = link_direct,
    .start = start,
    .progress = kl_pipeline_progress,
    .blocked_on = kl_pipeline_blocked_on,
};
