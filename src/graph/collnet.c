/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "graph/records.h"

static const struct kl_channel_record *chain_record(const struct kl_connect *c, int channel, int rank)
{
    int base = c->source[channel] % c->base;

    return &kl_record(&c->ranks, rank)->channel[base % c->graph[KL_GRAPH_COLLNET_CHAIN].nchannels];
}

int kl_connect_chain_head(const struct kl_connect *c, int channel, int node)
{
    int first = c->nodes.head[node];

    return kl_shifted_rank(chain_record(c, channel, first)->chain_head, kl_record_shift(&c->ranks, first));
}

int kl_connect_collnet_heads(const struct kl_connect *c)
{
    if (!c->collnet) return 0;
    return kl_connect_shares_heads(c) ? c->nheads : kl_record(&c->ranks, c->nodes.head[0])->ndirect;
}

int kl_connect_direct_head(const struct kl_connect *c, int head, int node)
{
    int first = c->nodes.head[node];

    if (kl_connect_shares_heads(c)) return kl_connect_nvls_head(c, head, node);
    return kl_shifted_rank(kl_record(&c->ranks, first)->direct[head], kl_record_shift(&c->ranks, first));
}

static bool is_head(const struct kl_connect *c, int rank, int node)
{
    for (int h = 0; h < kl_connect_collnet_heads(c); h++)
        if (kl_connect_direct_head(c, h, node) == rank) return true;
    return false;
}

bool kl_connect_chains_begin_at_heads(const struct kl_connect *c)
{
    int n = c->collnet ? c->graph[KL_GRAPH_COLLNET_CHAIN].nchannels : 0;

    for (int channel = 0; channel < c->nchannels && channel < n; channel++)
        for (int node = 0; node < c->nodes.nnodes; node++)
            if (!is_head(c, kl_connect_chain_head(c, channel, node), node)) return false;
    return true;
}

static void chain_links(const struct kl_connect *c, int channel, int rank, struct kl_collnet_links *l)
{
    const struct kl_channel_record *r = chain_record(c, channel, rank);
    int shift = kl_record_shift(&c->ranks, rank);

    l->chain_up = r->chain_prev < 0 ? c->ranks.nranks : kl_shifted_rank(r->chain_prev, shift);
    l->chain_down = kl_shifted_rank(r->chain_next, shift);
}

static void recorded_downs(const struct kl_connect *c, int rank, struct kl_collnet_links *l)
{
    const int32_t *down = kl_record(&c->ranks, rank)->direct_down;

    while (l->ndown < KL_COLLNET_ARITY && down[l->ndown] >= 0) {
        l->down[l->ndown] = kl_shifted_rank(down[l->ndown], kl_record_shift(&c->ranks, rank));
        l->ndown++;
    }
}

/* A head of NVLS need not be one that the search of CollNetDirect found. */
static void other_ranks(const struct kl_connect *c, int node, int rank, struct kl_collnet_links *l)
{
    for (int i = c->nodes.first[node]; i < c->nodes.first[node + 1] && l->ndown < KL_COLLNET_ARITY; i++)
        if (c->nodes.rank[i] != rank) l->down[l->ndown++] = c->nodes.rank[i];
}

static void head_links(const struct kl_connect *c, int node, int rank, struct kl_collnet_links *l)
{
    l->out = c->ranks.nranks;
    if (kl_connect_shares_heads(c))
        other_ranks(c, node, rank, l);
    else
        recorded_downs(c, rank, l);
}

static void direct_links(const struct kl_connect *c, int rank, struct kl_collnet_links *l)
{
    int node = c->nodes.of_rank[rank], all = kl_connect_collnet_heads(c), heads[KL_COLLNET_HEADS];

    l->nheads = all < KL_COLLNET_HEADS ? all : KL_COLLNET_HEADS;
    for (int h = 0; h < l->nheads; h++) {
        heads[h] = kl_connect_direct_head(c, h, node);
        if (heads[h] == rank)
            l->head = h;
        else if (l->nup < KL_COLLNET_ARITY)
            l->up[l->nup++] = heads[h];
    }
    if (l->head >= 0) head_links(c, node, rank, l);
    for (int h = 0; h < l->nheads; h++) l->heads[h] = heads[(h + (l->head < 0 ? 0 : l->head)) % l->nheads];
    if (l->nheads) l->shift = rank % kl_nodes_size(&c->nodes, node) % l->nheads;
}

/* Nodes that are larger make no use of it, whatever the release. */
static bool connects_directly(const struct kl_connect *c)
{
    return c->nodes.max_local <= KL_COLLNET_HEADS || !kl_nccl_has(c->nccl, KL_CHANGE_COLLNET_DIRECT_8);
}

struct kl_collnet_links kl_connect_collnet(const struct kl_connect *c, int channel, int rank)
{
    struct kl_collnet_links l = {.chain_up = -1, .chain_down = -1, .head = -1, .out = -1};

    if (!c->collnet) return l;
    chain_links(c, channel, rank, &l);
    if (connects_directly(c)) direct_links(c, rank, &l);
    l.depth = l.nup || l.ndown ? 2 : 1;
    return l;
}
