/* SPDX-License-Identifier: Apache-2.0 */
/**
 * algorithm_nvls_tree.c - the algorithm NVLSTree: memory for each node and channel, and edges that join heads of the same number.
 */
#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/links.h"
#include "coll/nvls_group.h"

struct op {
    struct kl_nvls_op nvls;
    struct kl_links *links;
};

/* In the tree of the channel. What graphs call the first child is the head's own node. */
static ncclResult_t link_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_links *links)
{
    struct kl_nvls_links l = kl_connect_nvls(graph, channel, graph->rank);

    links->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank};
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

static ncclResult_t link_nvls_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                   struct kl_links *links)
{
    KL_TRY(kl_nvls_group_link(graph, cs, channel, true, links));
    return link_tree(graph, cs, channel, links);
}

static void start(const struct kl_algorithm *a, void *memory, struct kl_links *links, const struct kl_share *s)
{
    struct op *op = memory;

    (void)a;
    op->links = links;
    kl_nvls_group_start(&op->nvls, links, links, s);
}

/* Complete are buffers that nobody reads any more. */
static enum kl_progress progress(void *memory, ncclResult_t *rc)
{
    struct op *op = memory;
    bool here = op->links->moved_here, carried = here && kl_links_progress(op->links, rc) == KL_MOVED;
    enum kl_progress got = *rc ? KL_DONE : kl_nvls_op_progress(&op->nvls, rc);

    if (here && got != KL_STALLED && !*rc) kl_links_progress(op->links, rc);
    if (*rc || (got == KL_DONE && kl_links_drained(op->links))) return KL_DONE;
    return carried || got == KL_MOVED ? KL_MOVED : KL_STALLED;
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
    .link = link_nvls_tree,
    .unlink = kl_nvls_group_unlink,
    .start = start,
    .progress = progress,
    .blocked_on = blocked_on,
};
