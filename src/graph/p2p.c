/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/p2p.h"

#include "base/error.h"
#include "graph/levels.h"
#include "graph/tree.h"
#include "topo/paths.h"

#include <stdlib.h>

static int power_at_least(int x)
{
    int p = 1;

    while (p < x) p *= 2;
    return p;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- how many ---- */

/* NICs that it takes to carry what the GPU can send to its CPU. */
static int nics_by_bandwidth(const struct kl_topo *t, int gpu, int *nets)
{
    const struct kl_node *g = &t->node[kl_topo_at(t, KL_NODE_GPU, gpu)];
    int n = kl_topo_nearest(t, KL_NODE_GPU, gpu, KL_NODE_NET, nets), used = 0;
    float wanted = 0, total = 0;

    for (int k = g->first_link; k < g->first_link + g->nlinks; k++)
        if (t->node[t->link[k].to].type == KL_NODE_CPU) wanted = t->link[k].bw;
    while (used < n && total < wanted) total += kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, nets[used++])->bw;
    return used;
}

static int wanted_locally(const struct kl_topo *t, int from, int gpu)
{
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, from, KL_NODE_GPU, gpu);
    int links;

    if (p->type != KL_PATH_NVL) return 2;
    links = kl_whole(p->bw / kl_nvlink_bw(t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.sm));
    return 2 * (links > KL_MAX_CHANNELS ? KL_MAX_CHANNELS : links > 1 ? links : 1);
}

static int wanted_remotely(const struct kl_topo *t, int gpu, int nranks, int n, int param, int *nets)
{
    int share = 2, nics;

    if (param != -1) return param;
    while ((int64_t)share * nranks > (int64_t)n * 4 && share > 1) share /= 2;
    nics = nics_by_bandwidth(t, gpu, nets);
    return nics > share ? nics : share;
}

/* The fewest channels that any pair of a GPU of this machine and a rank wants. */
static int fewest_wanted(const struct kl_topo *t, int nranks, int n, int per_net_peer, int *nets)
{
    int ng = t->count[KL_NODE_GPU], fewest = n;

    for (int g = 0; g < ng; g++) {
        for (int r = 0; r < ng; r++)
            if (r != g) fewest = least(fewest, wanted_locally(t, r, g));
        if (nranks > ng) {
            int k = wanted_remotely(t, g, nranks, n, per_net_peer, nets);

            if (k >= 0) fewest = least(fewest, k);
        }
    }
    return fewest;
}

static int batches(const struct kl_channel_params *p)
{
    int64_t n = p->work_args_bytes > 16 * KL_MAX_CHANNELS + 32 ? KL_MAX_CHANNELS : (p->work_args_bytes - 32) / 16;

    return n < 1 ? 1 : 1 << kl_log2((unsigned)n);
}

struct kl_p2p_channels kl_p2p_channels_of(const struct kl_topo *topo, const struct kl_connect *connect,
                                          const struct kl_channel_params *params, int parent)
{
    int *nets = malloc(((size_t)topo->count[KL_NODE_NET] + 1) * sizeof *nets);
    struct kl_p2p_channels c;

    c.n = least(connect->nchannels, (int)params->max_p2p);
    if (c.n < params->min_p2p) c.n = (int)params->min_p2p;
    if (parent) c.n = least(c.n, parent);
    c.per_peer = nets ? fewest_wanted(topo, connect->ranks.nranks, c.n, (int)params->per_net_peer, nets) : 1;
    c.per_peer = power_at_least(c.per_peer);
    c.n = least(power_at_least(c.n), batches(params));
    c.per_peer = least(c.per_peer, c.n);
    free(nets);
    return c;
}

/* ---- when ---- */

/* 0, 1, 3, 6, ...: the k-th step is k further, modulo a power of two; what is beyond n is left out. */
static int next_delta(int delta, int *k, int n)
{
    int modulus = power_at_least(n);

    do delta = (delta + ++*k) % modulus;
    while (delta >= n && *k < modulus);
    return delta;
}

/* The two levels of the schedule; flat when nodes have different sizes. */
struct levels {
    const struct kl_nodes *nodes;
    bool flat;
    int nouter, ninner, outer, inner;
};

static struct levels levels_of(const struct kl_connect *c)
{
    const struct kl_nodes *n = &c->nodes;
    struct levels l = {.nodes = n, .nouter = n->nnodes, .ninner = n->max_local};

    for (int i = 0; i < n->nnodes; i++) l.flat |= kl_nodes_size(n, i) != n->max_local;
    l.outer = n->of_rank[c->rank];
    l.inner = n->local_rank[c->rank];
    if (l.flat) l.nouter = 1, l.ninner = c->ranks.nranks, l.outer = 0, l.inner = c->rank;
    return l;
}

static int rank_at(const struct levels *l, int outer, int inner)
{
    outer = (outer + l->nouter) % l->nouter;
    inner = (inner + l->ninner) % l->ninner;
    return l->flat ? inner : l->nodes->rank[l->nodes->first[outer] + inner];
}

ncclResult_t kl_p2p_schedule(const struct kl_connect *c, struct kl_p2p_round *round)
{
    struct levels l = levels_of(c);
    int rounds = 0;

    for (int i = 0, outer = 0, ko = 0; i < l.nouter; i++, outer = next_delta(outer, &ko, l.nouter))
        for (int j = 0, inner = 0, ki = 0; j < l.ninner; j++, inner = next_delta(inner, &ki, l.ninner))
            round[rounds++] = (struct kl_p2p_round){.send = rank_at(&l, l.outer + outer, l.inner + inner),
                                                    .recv = rank_at(&l, l.outer - outer, l.inner - inner)};
    if (rounds != c->ranks.nranks)
        return KL_FAIL(ncclInternalError, "a schedule of %d rounds for %d ranks", rounds, c->ranks.nranks);
    return ncclSuccess;
}

/* ---- where ---- */

int kl_p2p_base(const struct kl_connect *c, int round)
{
    int local = c->nodes.max_local, base = round;

    if (c->nodes.nnodes > 1) base = round / local * ((local + 7) / 8) + round % local / 8;
    return base & 0xff;
}

static int mirror(int x, int bits)
{
    int y = 0;

    for (int i = 0; i < bits; i++) y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}

int kl_p2p_channel(int base, int part, int n)
{
    return (base + mirror(part, kl_log2((unsigned)n))) & (n - 1);
}

int kl_p2p_part(int base, int channel, int n)
{
    return mirror((channel - base) & (n - 1), kl_log2((unsigned)n));
}
