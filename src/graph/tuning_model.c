/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_rules.h"

#include "base/error.h"
#include "base/log.h"
#include "graph/grid.h"
#include "graph/tree.h"

#include <stdlib.h>

/* Inputs of the model of one function, algorithm and protocol. */
struct terms {
    const struct kl_tuning *t;
    const struct kl_graph_facts *graph; /* of the algorithm */
    int func, algo, proto;
    int nsteps;
    float overhead;                 /* of a network message, microseconds */
    float ppn;                      /* ranks per node */
    enum kl_tuning_refusal refusal; /* why there is no bandwidth */
    struct kl_tuning_latency parts;
};

static bool gathers(int func)
{
    return kl_func_gathers(func);
}

static bool is_collnet(int algo)
{
    return kl_algo_is_collnet(algo);
}

static bool is_nvls(int algo)
{
    return kl_algo_is_nvls(algo);
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static int generation(int sm)
{
    return sm >= 100 ? 3 : sm >= 90 ? 2 : sm >= 80 ? 1 : 0;
}

/* ---- threads ---- */

static int threads(const char *name, int64_t wanted, int lo, int hi, int otherwise)
{
    if (wanted <= 0) return otherwise;
    if (wanted % 32) {
        KL_WARN("%s=%lld is not a multiple of 32: using %d", name, (long long)wanted, hi);
        return hi;
    }
    if (wanted > hi) {
        KL_WARN("%s=%lld is above the maximum: using %d", name, (long long)wanted, hi);
        return hi;
    }
    if (wanted < lo) {
        KL_WARN("%s=%lld is below the minimum: using %d", name, (long long)wanted, lo);
        return lo;
    }
    return (int)wanted;
}

static void set_threads(struct kl_tuning *t, const struct kl_tuning_params *p)
{
    const struct kl_graph_facts *ring = &t->in.graph[KL_GRAPH_RING];
    bool small = ring->bw_intra * (float)ring->nchannels <= t->at.small_ring_bw;
    int all = threads("NCCL_NTHREADS", p->nthreads, 64, 512, 512);
    int ll128 = threads("NCCL_LL128_NTHREADS", p->ll128_nthreads, 160, 640, 640);

    for (int a = KL_ALGO_TREE; a <= KL_ALGO_RING; a++) {
        t->max_threads[a][KL_PROTO_LL] = t->max_threads[a][KL_PROTO_SIMPLE] = all;
        t->max_threads[a][KL_PROTO_LL128] = ll128;
    }
    if (small && p->nthreads <= 0 && !kl_nccl_has(t->in.nccl, KL_CHANGE_RING_512))
        t->max_threads[KL_ALGO_RING][KL_PROTO_SIMPLE] = 256;
    for (int a = KL_ALGO_COLLNET_DIRECT; a <= KL_ALGO_NVLS_TREE; a++) t->max_threads[a][KL_PROTO_SIMPLE] = 640;
    for (int a = KL_NCCL_ALGOS; a < KL_ALGOS; a++)
        for (int k = 0; k < KL_PROTOS; k++) t->max_threads[a][k] = kl_algo_info[a].protos >> k & 1 ? 96 : 0;
}

static void set_thresholds(struct kl_tuning *t, const struct kl_tuning_params *p)
{
    const char *at = p->thread_thresholds;

    for (int a = 0; a < KL_ALGOS; a++)
        for (int k = 0; k < KL_PROTOS; k++) t->threshold[a][k] = k == KL_PROTO_SIMPLE ? 64 : 8;
    t->threshold[KL_ALGO_RING][KL_PROTO_LL] *= t->in.nranks;
    t->threshold[KL_ALGO_COLLNET_DIRECT][KL_PROTO_SIMPLE] = t->threshold[KL_ALGO_COLLNET_CHAIN][KL_PROTO_SIMPLE] = 512;
    for (int i = 0; at && i < 2 * KL_PROTOS; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);

        if (end == at) return;
        at = end;
        if (value >= 0) t->threshold[i / KL_PROTOS][i % KL_PROTOS] = value;
    }
}

/* ---- bandwidth ---- */

static bool has(const struct terms *m, enum kl_change change)
{
    return kl_nccl_has(m->t->in.nccl, change);
}

/* Within a node at least a channel's bandwidth is lost; between nodes both of a pair use the bandwidth. */
static float nvls_bandwidth(const struct terms *m)
{
    const struct kl_graph_facts *g = m->graph;
    const struct kl_tuning_input *in = &m->t->in;
    int gen = generation(in->min_sm), column = in->nnodes == 1 ? 0 : in->nnodes == 2 ? 1 : 2;
    bool tree = m->algo == KL_ALGO_NVLS_TREE;
    float intra = (float)(g->bw_intra * m->t->at.nvls_efficiency[gen] * (g->nchannels - 1) / g->nchannels);
    float inter = g->bw_inter * (in->nnodes <= 2 && tree ? 2 : 1), bw;
    float local = has(m, KL_CHANGE_NVLS_FEWEST) ? (float)in->min_local_ranks : m->ppn;

    intra *= m->func == KL_FUNC_ALL_REDUCE ? 2.0f : (local - 1) / local;
    bw = (float)lesser(intra, inter);
    return tree ? (float)lesser(bw, m->t->at.nvls_tree[gen][column]) : bw;
}

/* As it was modelled before its efficiency was known. */
static float early_nvls_bandwidth(const struct terms *m)
{
    const struct kl_graph_facts *g = m->graph;

    if (!gathers(m->func) || !has(m, KL_CHANGE_NVLS_GATHERS)) return (float)lesser(g->bw_intra, g->bw_inter);
    return (float)lesser(g->bw_intra * (m->ppn - 1) / m->ppn, g->bw_inter * 0.9f);
}

/* Rings, trees and PAT once counted the bandwidth inside of nodes up to two of them. */
static float chain_channel_bandwidth(const struct terms *m)
{
    const struct kl_graph_facts *g = m->graph;
    const struct kl_tuning_input *in = &m->t->in;
    bool between = m->algo == KL_ALGO_RING && has(m, KL_CHANGE_RING_INTER) && in->min_sm >= 100;

    if (m->algo == KL_ALGO_TREE && has(m, KL_CHANGE_TREE_LESSER)) return (float)lesser(g->bw_intra, g->bw_inter);
    if (m->algo == KL_ALGO_PAT && has(m, KL_CHANGE_PAT_LESSER)) return (float)lesser(g->bw_intra, g->bw_inter);
    return in->nnodes <= (between ? 1 : 2) ? g->bw_intra : g->bw_inter;
}

/* GB/s of one channel. */
static float channel_bandwidth(const struct terms *m)
{
    const struct kl_graph_facts *g = m->graph;
    int nnodes = m->t->in.nnodes;
    float bw = is_collnet(m->algo) ? g->bw_intra : chain_channel_bandwidth(m);

    if (is_nvls(m->algo) && has(m, KL_CHANGE_NVLS_MODEL)) return nvls_bandwidth(m);
    if (m->algo == KL_ALGO_NVLS) bw = early_nvls_bandwidth(m);
    if (m->algo == KL_ALGO_NVLS_TREE) bw = (float)lesser(g->bw_intra, nnodes <= 2 ? g->bw_inter : g->bw_inter / 2);
    return bw;
}

/* The bandwidth of rings and trees after the protocol's loss. */
static float chain_bandwidth(const struct terms *m, float bus)
{
    const struct kl_tuning_constants *k = &m->t->at;
    const struct kl_tuning_input *in = &m->t->in;
    int gen = generation(in->min_sm), column = in->nnodes == 1 ? 0 : in->nnodes == 2 ? 1 : 2;
    bool amd = in->cpu_vendor == KL_VENDOR_AMD || in->cpu_vendor == KL_VENDOR_MIXED;
    double ll_max = k->ll_max[in->nnodes == 1 ? gen : amd][column];
    int n = m->graph->nchannels;

    if (m->algo == KL_ALGO_RING && m->proto == KL_PROTO_LL) bus = (float)lesser(ll_max, bus * 0.5);
    if (m->algo == KL_ALGO_RING && m->proto == KL_PROTO_LL128)
        bus = (float)lesser(bus * 0.92, n * k->ring_ll128[gen][column]);
    if (m->algo != KL_ALGO_TREE) return bus;
    if (m->func == KL_FUNC_ALL_REDUCE) bus = (float)lesser(bus * 0.92, n * k->tree[gen][column]);
    if (m->proto == KL_PROTO_LL) bus = (float)lesser(bus * 1.0 / 3.8, ll_max);
    if (m->proto == KL_PROTO_LL128)
        bus = (float)lesser(bus * (in->nnodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0), n * k->tree_ll128[gen][column]);
    if (in->max_tree_pattern == KL_PATTERN_TREE) bus = (float)(bus * 0.85);
    return bus;
}

static float collnet_direct_bandwidth(struct terms *m, float bus, float bw)
{
    const struct kl_tuning_input *in = &m->t->in;
    bool offered =
        m->t->at.collnet_gathers || (m->func == KL_FUNC_ALL_GATHER ? in->collnet_gather : in->collnet_scatter);
    float factor, weight;

    if (gathers(m->func)) {
        bus = m->ppn * bw;
        if (has(m, KL_CHANGE_COLLNET_GATHERS))
            return m->ppn * (float)lesser(m->graph->bw_intra, m->graph->bw_inter * 0.9f);
        if (in->nnodes > 1 && !offered) m->refusal = KL_REFUSED_COLLNET_GATHER;
        if (in->nnodes > 1 && offered && m->ppn > (float)in->collnet_heads) m->refusal = KL_REFUSED_COLLNET_HEADS;
        if (m->refusal) bus = 0;
        weight = (m->ppn - 1) / 7;
        return (float)(bus * (0.85 * weight + 0.95 * (1 - weight)));
    }
    factor = m->ppn / (float)m->graph->nchannels;
    factor -= (factor - 1) / 2;
    bus /= factor;
    return in->min_sm >= 90 ? (float)(bus * 0.85) : bus;
}

static float bus_bandwidth(struct terms *m)
{
    float bw = channel_bandwidth(m), bus = (float)m->graph->nchannels * bw;

    if (m->algo == KL_ALGO_RING || m->algo == KL_ALGO_TREE) return chain_bandwidth(m, bus);
    if (m->algo == KL_ALGO_PAT) return (float)(bus * 0.75);
    if (is_collnet(m->algo) && m->proto != KL_PROTO_SIMPLE) {
        m->refusal = KL_REFUSED_PROTO;
        return 0;
    }
    return m->algo == KL_ALGO_COLLNET_DIRECT ? collnet_direct_bandwidth(m, bus, bw) : bus;
}

static struct kl_grid grid_of(const struct terms *m)
{
    return kl_grid_of(m->t->in.nranks, m->t->in.nnodes, m->t->in.max_local_ranks);
}

/* Each rank sends everything to every peer, on one channel if it leaves the node, and reduces all of it. */
static float one_shot_bandwidth(struct terms *m)
{
    const struct kl_grid grid = grid_of(m);
    const struct kl_graph_facts *g = m->graph;
    int near = kl_grid_peers(&grid, grid.inside), far = kl_grid_peers(&grid, grid.dimensions) - near;
    double inside = lesser(m->t->at.one_shot_bw, 0.8 * g->nchannels * g->bw_intra);
    double outside = g->bw_inter;
    double per_byte = (near ? near / inside : 0) + (far ? far / outside : 0);

    return g->nchannels ? (float)(1 / per_byte) : 0;
}

/* Each rank writes once and reads the data of all others. */
static float flat_bandwidth(struct terms *m)
{
    const float *moved = m->t->at.flat_moved[m->func];
    const int n = m->t->in.nranks, more = n > 8 ? n - 8 : 0;
    const float bytes = n <= 2 ? moved[0] : n <= 4 ? moved[1] : moved[2] + (float)more * moved[3];

    return m->graph->nchannels ? m->t->at.flat_bw / bytes : 0;
}

/* Of NCCL's algorithms: from bus bandwidth to the user's bandwidth. */
static float nccl_bandwidth(struct terms *m)
{
    float bus = bus_bandwidth(m), ratio = 0.5f;

    if (gathers(m->func) && m->algo != KL_ALGO_RING) return bus;
    if (m->algo == KL_ALGO_RING) ratio = (float)((1.0 * m->t->in.nranks) / m->nsteps);
    if (is_nvls(m->algo))
        ratio = has(m, KL_CHANGE_NVLS_MODEL) ? (float)((1.0 * m->t->in.nranks) / m->nsteps) : (float)(5.0 / 6.0);
    return bus * ratio;
}

/* ---- latency ---- */

static int hardware(const struct terms *m)
{
    if (m->t->in.nnodes > 1) return KL_HW_NET;
    return m->graph->type_intra == KL_PATH_NVL ? KL_HW_NVLINK : KL_HW_PCI;
}

static float hw_latency(const struct terms *m, int hw, int algo, int proto)
{
    /* NVLink of POWER machines reaches the CPU, and trees gain nothing there over rings. */
    bool power = m->t->in.cpu_arch == KL_ARCH_POWER && !has(m, KL_CHANGE_POWER_TREES);

    if (power && hw == KL_HW_PCI && algo == KL_ALGO_TREE && proto == KL_PROTO_SIMPLE) algo = KL_ALGO_RING;
    return m->t->at.hw_latency[hw][algo][proto];
}

/* The parts are set beside each sum. The order of additions is the reference's: single precision shows it. */

static float rooted_ring_latency(struct terms *m)
{
    struct kl_tuning_latency *p = &m->parts;
    float hop = hw_latency(m, hardware(m), KL_ALGO_RING, m->proto), all;
    int hops = m->graph->same_channels ? 1 : m->nsteps;
    bool inside = hardware(m) != KL_HW_NET;

    if (!m->graph->same_channels && m->proto == KL_PROTO_SIMPLE)
        hop = hw_latency(m, hardware(m), KL_ALGO_TREE, KL_PROTO_SIMPLE);
    all = (float)hops * hop;
    *(inside ? &p->inside : &p->between) = all;
    *(inside ? &p->inside_hops : &p->between_hops) = hops;
    return p->base + all;
}

static float ring_latency(struct terms *m, float intra, float inter)
{
    struct kl_tuning_latency *p = &m->parts;
    int nnodes = m->t->in.nnodes;
    float overhead = 0;

    if (m->func == KL_FUNC_BROADCAST || m->func == KL_FUNC_REDUCE) return rooted_ring_latency(m);
    if (nnodes > 1) {
        overhead = m->proto == KL_PROTO_SIMPLE ? 3 * m->overhead : m->overhead;
        p->between_hops = m->func == KL_FUNC_ALL_REDUCE ? 2 * (nnodes - 1) : nnodes - 1;
    }
    if (intra < overhead) intra = overhead;
    p->inside_hops = m->nsteps - p->between_hops;
    p->inside = (float)p->inside_hops * intra;
    p->between = (float)p->between_hops * inter;
    return p->base + p->inside + p->between;
}

/* Ranks per node but one; nodes as levels of a tree. */
static int others_of_node(const struct terms *m)
{
    return m->t->in.nranks / m->t->in.nnodes - 1;
}

static int levels_of(const struct terms *m)
{
    return kl_log2((unsigned)m->t->in.nnodes);
}

static float collnet_direct_latency(struct terms *m, float intra, float inter)
{
    struct kl_tuning_latency *p = &m->parts;
    const int per_node = others_of_node(m);
    double extra = 2 * (per_node * 0.4);

    p->inside_hops = per_node > 0 ? 2 : 0;
    p->inside = (float)p->inside_hops * intra;
    p->between_hops = 1;
    p->between = inter;
    p->extra = (float)extra;
    return (float)(p->base + (p->inside + extra) + inter);
}

static float pat_latency(struct terms *m, float intra, float inter)
{
    const int levels = levels_of(m);
    struct kl_tuning_latency *p = &m->parts;
    const struct kl_tuning_constants *k = &m->t->at;
    double between = levels * (inter / 3.5), extra = m->t->in.nranks * k->pat_rank;

    (void)intra;
    *p = (struct kl_tuning_latency){(float)k->pat_base, 0, (float)between, (float)extra, 0, levels};
    return (float)(k->pat_base + between + extra);
}

/* Hops in chains, trees and through switches. */
static float hops_latency(struct terms *m, float intra, float inter, int inside, int between)
{
    struct kl_tuning_latency *p = &m->parts;

    p->inside_hops = inside;
    p->between_hops = between;
    p->inside = (float)inside * intra;
    p->between = (float)between * inter;
    return m->algo == KL_ALGO_TREE ? p->base + (p->inside + p->between) : p->base + p->inside + p->between;
}

static float tree_latency(struct terms *m, float intra, float inter)
{
    return hops_latency(m, intra, inter, 2 * others_of_node(m), 2 * levels_of(m));
}

static float collnet_chain_latency(struct terms *m, float intra, float inter)
{
    return hops_latency(m, intra, inter, 2 * others_of_node(m), 1);
}

static float nvls_latency(struct terms *m, float intra, float inter)
{
    m->parts.base = 0; /* whatever the table says */
    return hops_latency(m, intra, inter, 1, m->t->in.nnodes > 1);
}

static float nvls_tree_latency(struct terms *m, float intra, float inter)
{
    return hops_latency(m, intra, inter, 1, 2 * levels_of(m));
}

/* Ranks that share cores begin a further exchange after all of them have run. */
static float waits_for_cores(const struct terms *m, int exchanges)
{
    const int others = m->t->in.ranks_per_cpu - 1;

    return exchanges > 1 && others > 0 ? (float)((exchanges - 1) * others) * m->t->at.one_shot_round : 0;
}

/* An exchange for each dimension of the grid, and in each a message to every peer. */
static float one_shot_latency(struct terms *m, float intra, float inter)
{
    const float *peer = m->t->at.one_shot_peer;
    const struct kl_grid grid = grid_of(m);
    int near = kl_grid_peers(&grid, grid.inside), far = kl_grid_peers(&grid, grid.dimensions) - near;

    inter = hw_latency(m, KL_HW_NET, m->algo, m->proto) + 2 * m->graph->latency_inter; /* also with one rank per node */
    m->parts.extra = (float)near * peer[0] + (float)far * peer[1] + waits_for_cores(m, grid.inside);
    return hops_latency(m, intra, inter, grid.inside, grid.dimensions - grid.inside) + m->parts.extra;
}

/* One flag per rank: each polls all others, or only the root of a broadcast. */
static float flat_latency(struct terms *m, float intra, float inter)
{
    const int looks = m->func == KL_FUNC_BROADCAST ? 1 : m->t->in.nranks - 1;

    (void)inter;
    m->parts.extra = (float)looks * m->t->at.flat_peer;
    return hops_latency(m, intra, 0, 1, 0) + m->parts.extra;
}

/* The algorithm of the hops between nodes: with one rank per node the exchange is a tree's. */
static int algo_between(const struct terms *m)
{
    if (has(m, KL_CHANGE_ONE_PER_NODE))
        return m->algo == KL_ALGO_RING && m->t->in.max_local_ranks == 1 ? KL_ALGO_TREE : m->algo;
    return m->ppn == 1 ? KL_ALGO_TREE : m->algo;
}

/* ---- all together ---- */

/* GB/s, and microseconds, given the latencies of a hop inside a node and between nodes. */
static const struct model {
    float (*bandwidth)(struct terms *m);
    float (*latency)(struct terms *m, float intra, float inter);
} models[KL_ALGOS] = {
    [KL_ALGO_TREE] = {nccl_bandwidth, tree_latency},
    [KL_ALGO_RING] = {nccl_bandwidth, ring_latency},
    [KL_ALGO_COLLNET_DIRECT] = {nccl_bandwidth, collnet_direct_latency},
    [KL_ALGO_COLLNET_CHAIN] = {nccl_bandwidth, collnet_chain_latency},
    [KL_ALGO_NVLS] = {nccl_bandwidth, nvls_latency},
    [KL_ALGO_NVLS_TREE] = {nccl_bandwidth, nvls_tree_latency},
    [KL_ALGO_PAT] = {nccl_bandwidth, pat_latency},
    [KL_ALGO_ONE_SHOT] = {one_shot_bandwidth, one_shot_latency},
    [KL_ALGO_FLAT] = {flat_bandwidth, flat_latency},
};

static float model_latency(struct terms *m)
{
    int intra_hw = m->graph->type_intra == KL_PATH_NVL ? KL_HW_NVLINK : KL_HW_PCI;
    float intra = hw_latency(m, intra_hw, m->algo, m->proto);
    float inter = hw_latency(m, KL_HW_NET, algo_between(m), m->proto) + m->graph->latency_inter;

    m->parts = (struct kl_tuning_latency){.base = m->t->at.base_latency[m->algo][m->proto]};
    if (m->proto == KL_PROTO_SIMPLE) inter += m->graph->latency_inter;
    return models[m->algo].latency(m, intra, inter);
}

static float net_overhead(const struct kl_tuning_input *in, int64_t param)
{
    if (param != -2) return (float)((double)param * 0.001);
    return in->cpu_arch == KL_ARCH_X86 && in->cpu_vendor == KL_VENDOR_AMD ? 2.0f : 1.0f;
}

static int steps_of(int func, int nranks)
{
    if (func == KL_FUNC_ALL_REDUCE) return 2 * (nranks - 1);
    return gathers(func) ? nranks - 1 : nranks;
}

/* Between nodes, gathering or scattering in the network needs a plugin that can, and a head for every rank. */
static void refuse_gather(struct kl_tuning *t, struct terms *m)
{
    const struct kl_tuning_input *in = &t->in;
    bool concerned = m->algo == KL_ALGO_COLLNET_DIRECT || m->algo == KL_ALGO_NVLS;
    bool offered = m->func == KL_FUNC_ALL_GATHER ? in->collnet_gather : in->collnet_scatter;

    if (!has(m, KL_CHANGE_COLLNET_GATHERS) || !concerned || !gathers(m->func)) return;
    if (m->proto != KL_PROTO_SIMPLE || in->nnodes == 1) return;
    if (in->max_local_ranks > in->collnet_heads) m->refusal = KL_REFUSED_COLLNET_HEADS;
    if (!offered || !in->collnet) m->refusal = KL_REFUSED_COLLNET_GATHER;
    if (m->refusal) t->bandwidth[m->func][m->algo][m->proto] = 0;
}

static void model_one(struct kl_tuning *t, const struct kl_tuning_params *p, struct terms *m)
{
    uint8_t *refusal = &t->refusal[m->func][m->algo][m->proto];

    *refusal = kl_tuning_not_modelled(&t->in, p->pat, m->func, m->algo, m->proto);
    if (*refusal) return;
    m->graph = &t->in.graph[kl_algo_graph(m->algo)];
    m->refusal = KL_TUNING_ALLOWED;
    if (is_nvls(m->algo) && m->graph->nchannels < 2 && has(m, KL_CHANGE_NVLS_MODEL)) return; /* nor a latency */
    t->bandwidth[m->func][m->algo][m->proto] = models[m->algo].bandwidth(m);
    refuse_gather(t, m);
    t->latency[m->func][m->algo][m->proto] = model_latency(m);
    t->parts[m->func][m->algo][m->proto] = m->parts;
    *refusal = m->refusal;
}

static void model_func(struct kl_tuning *t, const struct kl_tuning_params *p, int func)
{
    struct terms m = {.t = t, .func = func, .nsteps = steps_of(func, t->in.nranks)};

    m.overhead = net_overhead(&t->in, p->net_overhead);
    m.ppn = (float)t->in.nranks / (float)t->in.nnodes;
    for (m.algo = 0; m.algo < t->at.algos; m.algo++)
        for (m.proto = 0; m.proto < KL_PROTOS; m.proto++) model_one(t, p, &m);
}

/* The text that errors quote. */
static void keep_text(char to[KL_TUNING_TEXT], const char *text)
{
    struct kl_text t = kl_text_in(to, KL_TUNING_TEXT);

    if (text) kl_text_add(&t, "%s", text);
}

ncclResult_t kl_tuning_compute(const struct kl_tuning_constants *constants, const struct kl_tuning_input *in,
                               const struct kl_tuning_params *params, struct kl_tuning *tuning)
{
    int nccl = constants->follows_nccl ? in->nccl : KL_NCCL_2_26_3;
    struct kl_tuning t = {.constants = constants, .at = kl_tuning_constants_at(constants, nccl), .in = *in};
    struct kl_tuning_filter filter;

    KL_TRY(kl_tuning_filter_read(params, constants->algos, &filter));
    t.in.nccl = nccl;
    t.ll128_c2c = params->ll128_c2c != 0;
    t.forced = filter.any;
    keep_text(t.algo, params->algo);
    keep_text(t.proto, params->proto);
    set_threads(&t, params);
    if (in->nranks > 1) {
        for (int f = 0; f < KL_FUNCS; f++) model_func(&t, params, f);
        set_thresholds(&t, params);
    }
    kl_tuning_exclude(&t, &filter);
    *tuning = t;
    return ncclSuccess;
}
