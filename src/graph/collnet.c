/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "base/error.h"
#include "graph/records.h"

/* Different first ranks of the channels, in channel order; at most KL_COLLNET_ARITY + 1. */
static int list_heads(const struct kl_graph *direct, int shift, int *heads)
{
    int n = 0;

    for (int c = 0; c < direct->nchannels && n <= KL_COLLNET_ARITY; c++) {
        int head = kl_shifted(direct->intra[(size_t)c * (size_t)direct->ngpus], shift), h = 0;

        while (h < n && heads[h] != head) h++;
        if (h == n) heads[n++] = head;
    }
    return n;
}

/* A head reduces what the other ranks of its channel send. */
static void head_links(const struct kl_graph *direct, int shift, int rank, struct kl_collnet_links *l)
{
    const int32_t *order = direct->intra + (size_t)l->head * (size_t)direct->ngpus;

    for (int i = 0; i < direct->ngpus && l->ndown < KL_COLLNET_ARITY; i++)
        if (kl_shifted(order[i], shift) != rank) l->down[l->ndown++] = kl_shifted(order[i], shift);
}

static void chain_links(const struct kl_graph *chain, int shift, int channel, int rank, int root,
                        struct kl_collnet_links *l)
{
    const int32_t *order = chain->intra + (size_t)(channel % chain->nchannels) * (size_t)chain->ngpus;

    for (int i = 0; i < chain->ngpus; i++) {
        if (kl_shifted(order[i], shift) != rank) continue;
        l->chain_up = i ? kl_shifted(order[i - 1], shift) : root;
        l->chain_down = i < chain->ngpus - 1 ? kl_shifted(order[i + 1], shift) : -1;
    }
}

ncclResult_t kl_connect_collnet(const struct kl_connect *c, const struct kl_graphs *graphs, int shift, int channel,
                                int rank, struct kl_collnet_links *links)
{
    const struct kl_graph *chain = graphs->graph[KL_GRAPH_COLLNET_CHAIN];
    const struct kl_graph *direct = graphs->graph[KL_GRAPH_COLLNET_DIRECT];
    struct kl_collnet_links l = {.chain_up = -1, .chain_down = -1, .head = -1, .out = -1};
    int root = c->ranks.nranks, heads[KL_COLLNET_ARITY + 1];

    if (!c->collnet || !chain || !direct || !chain->nchannels || !direct->nchannels)
        return KL_FAIL(ncclInternalError, "rank %d has no CollNet graphs", rank);
    chain_links(chain, shift, channel, rank, root, &l);
    l.nheads = list_heads(direct, shift, heads);
    for (int h = 0; h < l.nheads; h++) {
        if (heads[h] == rank)
            l.head = h;
        else if (l.nup < KL_COLLNET_ARITY)
            l.up[l.nup++] = heads[h];
    }
    if (l.head >= 0) {
        l.out = root;
        head_links(direct, shift, rank, &l);
    }
    for (int h = 0; h < l.nheads; h++) l.heads[h] = heads[(h + (l.head < 0 ? 0 : l.head)) % l.nheads];
    l.shift = rank % kl_nodes_size(&c->nodes, c->nodes.of_rank[rank]) % l.nheads;
    l.depth = l.nup || l.ndown ? 2 : 1;
    *links = l;
    return ncclSuccess;
}
