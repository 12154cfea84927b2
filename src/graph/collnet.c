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

    return kl_shifted(chain_record(c, channel, first)->chain_head, kl_shift(&c->ranks, first));
}

int kl_connect_direct_head(const struct kl_connect *c, int head, int node)
{
    int first = c->nodes.head[node];

    return kl_shifted(kl_record(&c->ranks, first)->direct[head], kl_shift(&c->ranks, first));
}

static void chain_links(const struct kl_connect *c, int channel, int rank, struct kl_collnet_links *l)
{
    const struct kl_channel_record *r = chain_record(c, channel, rank);
    int shift = kl_shift(&c->ranks, rank);

    l->chain_up = r->chain_prev < 0 ? c->ranks.nranks : kl_shifted(r->chain_prev, shift);
    l->chain_down = kl_shifted(r->chain_next, shift);
}

static void head_links(const struct kl_connect *c, int rank, struct kl_collnet_links *l)
{
    const int32_t *down = kl_record(&c->ranks, rank)->direct_down;

    l->out = c->ranks.nranks;
    while (l->ndown < KL_COLLNET_ARITY && down[l->ndown] >= 0) {
        l->down[l->ndown] = kl_shifted(down[l->ndown], kl_shift(&c->ranks, rank));
        l->ndown++;
    }
}

struct kl_collnet_links kl_connect_collnet(const struct kl_connect *c, int channel, int rank)
{
    int node = c->nodes.of_rank[rank], heads[KL_COLLNET_HEADS];
    struct kl_collnet_links l = {.chain_up = -1, .chain_down = -1, .head = -1, .out = -1};

    if (!c->collnet) return l;
    chain_links(c, channel, rank, &l);
    l.nheads = kl_record(&c->ranks, c->nodes.head[node])->ndirect;
    for (int h = 0; h < l.nheads; h++) {
        heads[h] = kl_connect_direct_head(c, h, node);
        if (heads[h] == rank)
            l.head = h;
        else if (l.nup < KL_COLLNET_ARITY)
            l.up[l.nup++] = heads[h];
    }
    if (l.head >= 0) head_links(c, rank, &l);
    for (int h = 0; h < l.nheads; h++) l.heads[h] = heads[(h + (l.head < 0 ? 0 : l.head)) % l.nheads];
    if (l.nheads) l.shift = rank % kl_nodes_size(&c->nodes, node) % l.nheads;
    l.depth = l.nup || l.ndown ? 2 : 1;
    return l;
}
