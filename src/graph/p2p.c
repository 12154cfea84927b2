/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/p2p.h"

#include "base/error.h"
#include "graph/levels.h"
#include "graph/records.h"
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

/* The number of NICs with the bandwidth of the GPU's path to its CPU. */
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

    int nccl = t->options.nccl;
    bool nvlink = p->type == KL_PATH_NVL || (p->type == KL_PATH_NVB && kl_nccl_has(nccl, KL_CHANGE_P2P_NVB));

    *share = nvlink ? KL_P2P_NVLINKS : KL_P2P_TWO;
    if (!nvlink) return 2;
    links = kl_whole(p->bw / kl_nvlink_bw(t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.sm, nccl));
    return 2 * (links > KL_MAX_CHANNELS ? KL_MAX_CHANNELS : links > 1 ? links : 1);
}

/* Inputs of the number of channels per pair. */
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

/* ---- by the own GPU: newer releases ---- */

/* Whole GB/s of the NETs that a GPU spreads over, as far as it can send to its CPU, and how many these are. */
static ncclResult_t own_nets(const struct kl_topo *t, int gpu, int *count, float *bw)
{
    int cpu, first = -1, net;

    *count = 0;
    *bw = 0;
    KL_TRY(kl_path_cpu_of_gpu(t, gpu, &cpu));
    float wanted = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, cpu)->bw;
    for (int c = 0; c < KL_MAX_CHANNELS; c++) {
        KL_TRY(kl_topo_local_net(t, gpu, c, &net));
        if (c && net == first) break;
        if (!c) first = net;
        *bw += kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->bw;
        ++*count;
        if (*bw >= wanted) break;
    }
    return ncclSuccess;
}

/* The slowest of them. */
static float slowest_net(const struct kl_topo *t, int gpu)
{
    int first = -1, net;
    float least = 0;

    for (int c = 0; c < KL_MAX_CHANNELS && !kl_topo_local_net(t, gpu, c, &net) && (!c || net != first); c++) {
        float bw = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->bw;

        if (!c) first = net;
        if (!c || bw < least) least = bw;
    }
    return least;
}

/* Towards another node. */
static ncclResult_t wanted_by_bandwidth(const struct kl_topo *t, int gpu, const struct kl_channel_params *p,
                                        int *wanted)
{
    int count, by_bw;
    float bw;

    *wanted = (int)p->per_net_peer;
    if (p->per_net_peer >= 0 || !t->count[KL_NODE_NET]) {
        if (p->per_net_peer < 0) *wanted = 2;
        return ncclSuccess;
    }
    KL_TRY(own_nets(t, gpu, &count, &bw));
    by_bw = (int)((kl_whole(bw) + p->per_channel_net_bw - 1) / p->per_channel_net_bw);
    *wanted = !count ? 2 : by_bw > count ? by_bw : count;
    return ncclSuccess;
}

static void want_own(struct kl_rank_record *r, int wanted, int far)
{
    if (wanted >= r->p2p_wanted) return;
    r->p2p_wanted = wanted;
    r->p2p_far = far;
}

static ncclResult_t record_wanted(const struct kl_topo *t, int gpu, int nranks, const struct kl_channel_params *p,
                                  struct kl_rank_record *r)
{
    int ng = t->count[KL_NODE_GPU], share, wanted;

    r->p2p_wanted = KL_MAX_CHANNELS;
    for (int g = 0; g < ng; g++)
        if (g != gpu) want_own(r, wanted_locally(t, gpu, g, &share), t->node[kl_topo_at(t, KL_NODE_GPU, g)].gpu.rank);
    if (nranks <= ng) return ncclSuccess;
    KL_TRY(wanted_by_bandwidth(t, gpu, p, &wanted));
    want_own(r, wanted, -1);
    return ncclSuccess;
}

ncclResult_t kl_p2p_record(const struct kl_topo *t, int rank, int nranks, const struct kl_channel_params *p,
                           struct kl_rank_record *r)
{
    int gpu = kl_topo_gpu_of_rank(t, rank), quiet;

    if (gpu < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank);
    r->nccl = t->options.nccl;
    r->all_nvlink = kl_topo_all_nvlink(t);
    r->p2p_wanted = 0;
    r->p2p_far = -1;
    quiet = kl_error_quiet(1);
    r->net_bw = slowest_net(t, gpu);
    kl_error_quiet(quiet);
    return kl_nccl_has(r->nccl, KL_CHANGE_P2P_OWN_GPU) ? record_wanted(t, gpu, nranks, p, r) : ncclSuccess;
}

/* The fewest that any rank wants; of a rank that shares its record with others, the first is named. */
static void fewest_recorded(const struct kl_connect *c, struct kl_p2p_channels_why *why)
{
    why->wanted = KL_MAX_CHANNELS;
    for (int r = 0; r < c->ranks.nranks; r++) {
        const struct kl_rank_record *record = kl_record(&c->ranks, r);

        if (record->p2p_wanted >= why->wanted) continue;
        why->wanted = record->p2p_wanted;
        why->gpu = r;
        why->far = kl_shifted(record->p2p_far, kl_shift(&c->ranks, r));
    }
}

static enum kl_p2p_share share_of(const struct kl_topo *t, const struct kl_channel_params *p,
                                  const struct kl_p2p_channels_why *why)
{
    int a = kl_topo_gpu_of_rank(t, why->gpu), b = kl_topo_gpu_of_rank(t, why->far), share = KL_P2P_ALL;

    if (why->gpu < 0) return KL_P2P_ALL;
    if (why->far < 0) return p->per_net_peer >= 0 ? KL_P2P_PER_PEER : KL_P2P_BANDWIDTH;
    if (a < 0 || b < 0) return KL_P2P_NVLINKS;
    wanted_locally(t, a, b, &share);
    return (enum kl_p2p_share)share;
}

/* Of a power of two, so many that 8 ranks of each peer's group find channels of their own. */
static int share_among_peers(const struct kl_connect *c, const struct kl_channel_params *p, int n, int per_peer)
{
    int64_t peers = c->ranks.nranks;

    if (kl_nccl_has(c->nccl, KL_CHANGE_P2P_PEERS) && p->max_p2p_peers > 0 && p->max_p2p_peers < peers)
        peers = p->max_p2p_peers;
    while (per_peer > 1 && per_peer * ((peers + 7) / 8) > n) per_peer /= 2;
    return per_peer;
}

static struct kl_p2p_channels by_own_gpus(const struct kl_topo *t, const struct kl_connect *c,
                                          const struct kl_channel_params *p, struct kl_p2p_channels ch, int most)
{
    fewest_recorded(c, &ch.why);
    ch.why.share = share_of(t, p, &ch.why);
    ch.per_peer = power_at_least(ch.why.wanted);
    ch.n = power_at_least(ch.n);
    if (ch.n > most) limit(&ch.why, most, KL_P2P_ARGS);
    ch.n = least(ch.n, most);
    if (c->nodes.nnodes > 1 && p->per_net_peer < 0) {
        int shared = share_among_peers(c, p, ch.n, ch.per_peer);

        if (shared < ch.per_peer) ch.why.share = KL_P2P_PEERS;
        ch.per_peer = shared;
    }
    ch.per_peer = least(ch.per_peer, ch.n);
    return ch;
}

struct kl_p2p_channels kl_p2p_channels_of(const struct kl_topo *topo, const struct kl_connect *connect,
                                          const struct kl_channel_params *params, int parent)
{
    int *nets = malloc(((size_t)topo->count[KL_NODE_NET] + 1) * sizeof *nets), most = batches(params);
    struct kl_p2p_channels c = {.nccl = connect->nccl, .why = {.share = KL_P2P_ALL, .gpu = -1, .far = -1}};

    limit_channels(params, connect->nchannels, parent, &c.why);
    c.n = c.why.wanted = c.why.limited;
    if (kl_nccl_has(connect->nccl, KL_CHANGE_P2P_OWN_GPU)) {
        free(nets);
        return by_own_gpus(topo, connect, params, c, most);
    }
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
    [KL_P2P_NICS]     = {"nics", "as many as the NICs needed for a GPU's bandwidth to another node"},
    [KL_P2P_REMOTE]   = {"remote", "two towards ranks of other nodes, or one where there are more than two ranks per channel"},
    [KL_P2P_BANDWIDTH] = {"net_bandwidth", "one for every 14 GB/s (NCCL_P2P_PER_CHANNEL_NET_BW) that its NICs carry, towards other nodes"},
    [KL_P2P_PEERS]    = {"peers", "fewer than it takes to fill the NICs, as several peers are sent to at a time (NCCL_P2P_MAX_PEERS)"},
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

/* 0, 1, 3, 6, ...: the k-th step is k further, modulo a power of two; values beyond n are left out. */
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
    bool flat, groups; /* groups: all of one size, each within a node */
    int nouter, ninner, outer, inner;
};

static struct levels levels_of(const struct kl_connect *c)
{
    const struct kl_nodes *n = &c->nodes;
    struct levels l = {.nodes = n, .nouter = n->nnodes, .ninner = n->max_local};

    if (c->p2p_group) {
        int own = n->first[n->of_rank[c->rank]] + n->local_rank[c->rank];

        return (struct levels){.nodes = n,
                               .groups = true,
                               .nouter = c->ranks.nranks / c->p2p_group,
                               .ninner = c->p2p_group,
                               .outer = own / c->p2p_group,
                               .inner = own % c->p2p_group};
    }
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
    if (l->groups) return l->nodes->rank[outer * l->ninner + inner];
    return l->flat ? inner : l->nodes->rank[l->nodes->first[outer] + inner];
}

ncclResult_t kl_p2p_schedule(const struct kl_connect *c, struct kl_p2p_round *round)
{
    struct levels l = levels_of(c);
    int rounds = 0;

    for (int i = 0, outer = 0, ko = 0; i < l.nouter; i++, outer = next_delta(outer, &ko, l.nouter))
        for (int j = 0, inner = 0, ki = 0; j < l.ninner; j++, inner = l.groups ? j : next_delta(inner, &ki, l.ninner))
            round[rounds++] = (struct kl_p2p_round){.send = rank_at(&l, l.outer + outer, l.inner + inner),
                                                    .recv = rank_at(&l, l.outer - outer, l.inner - inner)};
    if (rounds != c->ranks.nranks)
        return KL_FAIL(ncclInternalError, "a schedule of %d rounds for %d ranks", rounds, c->ranks.nranks);
    return ncclSuccess;
}

/* ---- where ---- */

int kl_p2p_base(const struct kl_connect *c, int round)
{
    int local = c->p2p_group ? c->p2p_group : c->nodes.max_local, base = round;

    if (c->nodes.nnodes > 1) base = round / local * ((local + 7) / 8) + round % local / 8;
    return base & 0xff;
}

static int mirror(int x, int bits)
{
    int y = 0;

    for (int i = 0; i < bits; i++) y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}

int kl_p2p_channel(int base, int part, int n, int nccl)
{
    int bits = kl_log2((unsigned)n);

    if (kl_nccl_has(nccl, KL_CHANGE_P2P_PARTS)) return (mirror(base & (n - 1), bits) + part) & (n - 1);
    return (base + mirror(part, bits)) & (n - 1);
}
