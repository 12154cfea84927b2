/* SPDX-License-Identifier: Apache-2.0 */
/**
 * algorithm_nvls_nodes.c - NVLS on several nodes: memory for each node and channel, and heads of the same number that
 * are joined by trees (the algorithm NVLSTree), or meet in a network that reduces (NVLS with CollNet). The network
 * takes the place of the parent.
 */
#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/links.h"
#include "coll/nvls_group.h"

#include <stdlib.h>

struct op {
    struct kl_nvls_op nvls;
    struct kl_links *links;
};

/* ---- trees ---- */

/* In the tree of the channel. The graph's first child is the head's own node. */
static ncclResult_t join_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_links *links)
{
    struct kl_nvls_links l = kl_connect_nvls(graph, channel, graph->rank);

    if (l.head < 0) return ncclSuccess;
    links->position.up = l.tree_up >= 0;
    for (int i = 0; i < 2; i++) {
        links->position.ndown += l.tree_down[1 + i] >= 0;
        KL_TRY(kl_links_recv(links, cs, channel, i, l.tree_down[1 + i]));
        KL_TRY(kl_links_send(links, cs, channel, i, l.tree_down[1 + i]));
    }
    KL_TRY(kl_links_recv(links, cs, channel, KL_TREE_UP, l.tree_up));
    return kl_links_send(links, cs, channel, KL_TREE_UP, l.tree_up);
}

static ncclResult_t link_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_links *links)
{
    links->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank};
    KL_TRY(kl_nvls_group_link(graph, cs, channel, true, links));
    return join_tree(graph, cs, channel, links);
}

static void start_tree(const struct kl_algorithm *a, void *memory, struct kl_links *links, const struct kl_share *s)
{
    struct op *op = memory;

    (void)a;
    op->links = links;
    kl_nvls_group_start(&op->nvls, links, links, s);
}

/* ---- a network that reduces ---- */

static ncclResult_t join_network(const struct kl_connect *graph, struct kl_connections *cs, int channel, int head,
                                 struct kl_links *links)
{
    struct kl_nvls_group *group = links->own;
    const struct kl_meeting meeting = {
        .use = KL_EDGE_COLLNET_NVLS, .channel = channel, .edge = KL_TREE_UP, .head = kl_connect_nvls_head, .of = head};

    links->position.up = 1;
    return kl_links_meet(links, graph, cs, &meeting, &group->network);
}

static ncclResult_t link_network(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                 struct kl_links *links)
{
    int head = kl_connect_nvls(graph, channel, graph->rank).head;

    links->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank};
    KL_TRY(kl_nvls_group_link(graph, cs, channel, true, links));
    return head < 0 ? ncclSuccess : join_network(graph, cs, channel, head, links);
}

static void start_network(const struct kl_algorithm *a, void *memory, struct kl_links *links, const struct kl_share *s)
{
    const struct kl_nvls_group *group = links->own;
    const struct kl_collnet_op redop = {.type = s->type, .op = s->op};

    if (group->network)
        kl_collnet_link_begin(group->network, KL_COLLNET_ALL_REDUCE, redop, s->elem_bytes, s->signature);
    start_tree(a, memory, links, s);
}

/* ---- both ---- */

/* Complete means that no rank reads the buffers any more. */
static enum kl_progress progress(void *memory, ncclResult_t *rc)
{
    struct op *op = memory;
    bool here = op->links->moved_here, moved = here && kl_links_receive(op->links, rc);
    enum kl_progress got = *rc ? KL_DONE : kl_nvls_op_progress(&op->nvls, rc);

    if (here && !*rc) moved |= kl_links_send_on(op->links, rc);
    if (*rc || (got == KL_DONE && kl_links_drained(op->links))) return KL_DONE;
    return moved || got == KL_MOVED ? KL_MOVED : KL_STALLED;
}

static int blocked_on(void *memory, bool gone)
{
    struct op *op = memory;

    return gone ? kl_nvls_op_waits_in_vain(&op->nvls) : kl_nvls_op_blocked_on(&op->nvls);
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
