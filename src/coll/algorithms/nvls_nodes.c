/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls_nodes.c - NVLS on several nodes: memory for each node and channel, and heads of the same number that
 * are joined by trees (the algorithm NVLSTree), or meet in a network that reduces (NVLS with CollNet). The network
 * takes the place of the parent.
 */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/shm/nvls_group.h"

#include <stdlib.h>

struct op {
    struct kl_nvls_op nvls;
    struct kl_edges *edges;
};

/* ---- trees ---- */

/* In the tree of the channel. The graph's first child is the head's own node. */
static ncclResult_t join_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    struct kl_nvls_links l = kl_connect_nvls(graph, channel, graph->rank);

    if (l.head < 0) return ncclSuccess;
    edges->position.up = l.tree_up >= 0;
    for (int i = 0; i < 2; i++) {
        edges->position.ndown += l.tree_down[1 + i] >= 0;
        KL_TRY(kl_edges_recv(edges, cs, channel, i, l.tree_down[1 + i]));
        KL_TRY(kl_edges_send(edges, cs, channel, i, l.tree_down[1 + i]));
    }
    KL_TRY(kl_edges_recv(edges, cs, channel, KL_TREE_UP, l.tree_up));
    return kl_edges_send(edges, cs, channel, KL_TREE_UP, l.tree_up);
}

static ncclResult_t link_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    edges->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank};
    KL_TRY(kl_nvls_group_link(graph, cs, channel, true, edges));
    return join_tree(graph, cs, channel, edges);
}

static void start_tree(const struct kl_algorithm *a, void *memory, struct kl_edges *edges,
                       const struct kl_channel_work *s)
{
    struct op *op = memory;

    (void)a;
    op->edges = edges;
    kl_nvls_group_start(&op->nvls, edges, edges, s);
}

/* ---- a network that reduces ---- */

static ncclResult_t join_network(const struct kl_connect *graph, struct kl_connections *cs, int channel, int head,
                                 struct kl_edges *edges)
{
    struct kl_nvls_group *group = edges->own;
    const struct kl_network_edge meeting = {
        .use = KL_EDGE_COLLNET_NVLS, .channel = channel, .edge = KL_TREE_UP, .head = kl_connect_nvls_head, .of = head};

    edges->position.up = 1;
    return kl_edges_join_network(edges, graph, cs, &meeting, &group->network);
}

static ncclResult_t link_network(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                 struct kl_edges *edges)
{
    int head = kl_connect_nvls(graph, channel, graph->rank).head;

    edges->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank};
    KL_TRY(kl_nvls_group_link(graph, cs, channel, true, edges));
    return head < 0 ? ncclSuccess : join_network(graph, cs, channel, head, edges);
}

static void start_network(const struct kl_algorithm *a, void *memory, struct kl_edges *edges,
                          const struct kl_channel_work *s)
{
    const struct kl_nvls_group *group = edges->own;
    const struct kl_collnet_op redop = {.type = s->type, .op = s->op};

    if (group->network)
        kl_collnet_link_begin(group->network, KL_COLLNET_ALL_REDUCE, redop, s->elem_bytes, s->signature);
    start_tree(a, memory, edges, s);
}

/* ---- both ---- */

/* Complete means that no rank reads the buffers any more. */
static enum kl_progress progress(void *memory, ncclResult_t *rc)
{
    struct op *op = memory;
    bool here = op->edges->moved_here, moved = here && kl_edges_progress_receive(op->edges, rc);
    enum kl_progress got = *rc ? KL_DONE : kl_nvls_op_progress(&op->nvls, rc);

    if (here && !*rc) moved |= kl_edges_progress_send(op->edges, rc);
    if (*rc || (got == KL_DONE && kl_edges_drained(op->edges))) return KL_DONE;
    return moved || got == KL_MOVED ? KL_MOVED : KL_STALLED;
}

static int blocked_on(void *memory, bool gone)
{
    struct op *op = memory;

    return gone ? kl_nvls_op_departed_rank(&op->nvls) : kl_nvls_op_blocked_on(&op->nvls);
}

const struct kl_algorithm kl_algorithm_nvls_tree = {
    .algo = KL_ALGO_NVLS_TREE,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_NODE,
    .op_bytes = sizeof(struct op),
    .link = link_tree,
    .unlink = kl_nvls_group_unlink,
    .start = start_tree,
    .progress = progress,
    .blocked_on = blocked_on,
};

const struct kl_algorithm kl_algorithm_nvls_network = {
    .algo = KL_ALGO_NVLS,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_NODE,
    .unsigned_data = true,
    .op_bytes = sizeof(struct op),
    .link = link_network,
    .unlink = kl_nvls_group_unlink,
    .start = start_network,
    .progress = progress,
    .blocked_on = blocked_on,
};
