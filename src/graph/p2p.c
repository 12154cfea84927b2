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

/* Between two GPUs of the machine, its `from` and `gpu`. */
static int wanted_locally(const struct kl_topo *t, int from, int gpu, int *share)
{
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, from, KL_NODE_GPU, gpu);
    int links;

    *share = p->type == KL_PATH_NVL ? KL_P2P_NVLINKS : KL_P2P_TWO;
    if (p->type != KL_PATH_NVL) return 2;
    links = kl_whole(p->bw / kl_nvlink_bw(t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.sm));
    return 2 * (links > KL_MAX_CHANNELS ? KL_MAX_CHANNELS : links > 1 ? links : 1);
}

/* What all pairs are asked about. */
struct demand {
    const struct kl_topo *t;
    int nranks, n, per_net_peer;
    int *nets; /* scratch: room for all */
};

static int wanted_remotely(const struct demand *d, int gpu, int *share)
{
    int two = 2, nics;

    *share = KL_P2P_PER_PEER;
    if (d->per_net_peer != -1) return d->per_net_peer;
    while ((int64_t)two * d->nranks > (int64_t)d->n * 4 && two > 1) two /= 2;
    nics = nics_by_bandwidth(d->t, gpu, d->nets);
    *share = nics > two ? KL_P2P_NICS : KL_P2P_REMOTE;
    return nics > two ? nics : two;
}

static void want(struct kl_p2p_channels_why *why, int wanted, int share, int gpu, int far)
{
    if (wanted < 0 || wanted >= why->wanted) return;
    why->wanted = wanted;
    why->share = share;
    why->gpu = gpu;
    why->far = far;
}

/* The fewest channels that any pair of a GPU of this machine and a rank wants. */
static void fewest_wanted(const struct demand *d, struct kl_p2p_channels_why *why)
{
    int ng = d->t->count[KL_NODE_GPU], share;

    for (int g = 0; g < ng; g++) {
        int own = d->t->node[kl_topo_at(d->t, KL_NODE_GPU, g)].gpu.rank;

        for (int r = 0; r < ng; r++) {
            if (r == g) continue;
            int wanted = wanted_locally(d->t, r, g, &share);

            want(why, wanted, share, own, d->t->node[kl_topo_at(d->t, KL_NODE_GPU, r)].gpu.rank);
        }
        if (d->nranks <= ng) continue;
        int wanted = wanted_remotely(d, g, &share);

        want(why, wanted, share, own, -1);
    }
}

static int batches(const struct kl_channel_params *p)
{
    int64_t n = p->work_args_bytes > 16 * KL_MAX_CHANNELS + 32 ? KL_MAX_CHANNELS : (p->work_args_bytes - 32) / 16;

    return n < 1 ? 1 : 1 << kl_log2((unsigned)n);
}

static void limit(struct kl_p2p_channels_why *why, int n, enum kl_p2p_channels_limit by)
{
    why->limited = n;
    why->limit = by;
}

/* Before powers of two and kernel arguments. */
static void limit_channels(const struct kl_channel_params *p, int nchannels, int parent,
                           struct kl_p2p_channels_why *why)
{
    limit(why, nchannels, KL_P2P_CHANNELS);
    if (why->limited > p->max_p2p) limit(why, (int)p->max_p2p, KL_P2P_MAX);
    if (why->limited < p->min_p2p) limit(why, (int)p->min_p2p, KL_P2P_MIN);
    if (parent && why->limited > parent) limit(why, parent, KL_P2P_PARENT);
}

struct kl_p2p_channels kl_p2p_channels_of(const struct kl_topo *topo, const struct kl_connect *connect,
                                          const struct kl_channel_params *params, int parent)
{
    int *nets = malloc(((size_t)topo->count[KL_NODE_NET] + 1) * sizeof *nets), most = batches(params);
    struct kl_p2p_channels c = {.why = {.share = KL_P2P_ALL, .gpu = -1, .far = -1}};

    limit_channels(params, connect->nchannels, parent, &c.why);
    c.n = c.why.wanted = c.why.limited;
    struct demand d = {topo, connect->ranks.nranks, c.n, (int)params->per_net_peer, nets};
    if (nets)
        fewest_wanted(&d, &c.why);
    else
        c.why.wanted = 1;
    c.per_peer = power_at_least(c.why.wanted);
    c.n = power_at_least(c.n);
    if (c.n > most) limit(&c.why, most, KL_P2P_ARGS);
    c.n = least(c.n, most);
    c.per_peer = least(c.per_peer, c.n);
    free(nets);
    return c;
}

/* ---- in words ---- */

struct words {
    const char *name, *text;
};

/* clang-format off */
static const struct words limits[KL_P2P_LIMITS] = {
    [KL_P2P_CHANNELS] = {"channels", "as many as the communicator has"},
    [KL_P2P_MAX]      = {"max_p2p_nchannels", "NCCL_MAX_P2P_NCHANNELS allows no more"},
    [KL_P2P_MIN]      = {"min_p2p_nchannels", "NCCL_MIN_P2P_NCHANNELS asks for as many"},
    [KL_P2P_PARENT]   = {"parent", "the parent communicator has no more"},
    [KL_P2P_ARGS]     = {"work_args_bytes", "no more fit into the kernel arguments (NCCL_WORK_ARGS_BYTES)"},
};

static const struct words shares[KL_P2P_SHARES] = {
    [KL_P2P_ALL]      = {"all", "no pair of ranks wants fewer than there are"},
    [KL_P2P_NVLINKS]  = {"nvlinks", "two for each NVLink between two GPUs"},
    [KL_P2P_TWO]      = {"no_nvlink", "two, between GPUs of a node without NVLink"},
    [KL_P2P_NICS]     = {"nics", "as many as NICs that it takes to carry what a GPU can send to another node"},
    [KL_P2P_REMOTE]   = {"remote", "two towards ranks of other nodes, or one where there are more than two ranks per channel"},
    [KL_P2P_PER_PEER] = {"nchannels_per_net_peer", "NCCL_NCHANNELS_PER_NET_PEER, towards ranks of other nodes"},
};
/* clang-format on */

const char *kl_p2p_channels_limit_name(enum kl_p2p_channels_limit why)
{
    return limits[why].name;
}

const char *kl_p2p_channels_limit_text(enum kl_p2p_channels_limit why)
{
    return limits[why].text;
}

const char *kl_p2p_share_name(enum kl_p2p_share why)
{
    return shares[why].name;
}

const char *kl_p2p_share_text(enum kl_p2p_share why)
{
    return shares[why].text;
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

bool kl_p2p_flat(const struct kl_connect *c)
{
    return levels_of(c).flat;
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
