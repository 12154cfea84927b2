/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

#include "base/error.h"
#include "base/log.h"
#include "graph/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kl_algo_graph(enum kl_algo algo)
{
    static const int graph[KL_ALGOS] = {
        [KL_ALGO_TREE] = KL_GRAPH_TREE,
        [KL_ALGO_RING] = KL_GRAPH_RING,
        [KL_ALGO_COLLNET_DIRECT] = KL_GRAPH_COLLNET_DIRECT,
        [KL_ALGO_COLLNET_CHAIN] = KL_GRAPH_COLLNET_CHAIN,
        [KL_ALGO_NVLS] = KL_GRAPH_NVLS,
        [KL_ALGO_NVLS_TREE] = KL_GRAPH_NVLS,
        [KL_ALGO_PAT] = KL_GRAPH_TREE,
    };

    return graph[algo];
}

/* What the model of one function, algorithm and protocol is made from. */
struct terms {
    const struct kl_tuning *t;
    const struct kl_graph_facts *graph; /* of the algorithm */
    int func, algo, proto;
    int nsteps;
    float overhead; /* of a network message, microseconds */
    float ppn;      /* ranks per node */
};

static bool gathers(int func)
{
    return func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER;
}

static bool is_collnet(int algo)
{
    return algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN;
}

static bool is_nvls(int algo)
{
    return algo == KL_ALGO_NVLS || algo == KL_ALGO_NVLS_TREE;
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
    bool small = ring->bw_intra * (float)ring->nchannels <= t->constants->small_ring_bw;
    int all = threads("NCCL_NTHREADS", p->nthreads, 64, 512, 512);
    int ll128 = threads("NCCL_LL128_NTHREADS", p->ll128_nthreads, 160, 640, 640);

    for (int a = KL_ALGO_TREE; a <= KL_ALGO_RING; a++) {
        t->max_threads[a][KL_PROTO_LL] = t->max_threads[a][KL_PROTO_SIMPLE] = all;
        t->max_threads[a][KL_PROTO_LL128] = ll128;
    }
    if (small && p->nthreads <= 0) t->max_threads[KL_ALGO_RING][KL_PROTO_SIMPLE] = 256;
    for (int a = KL_ALGO_COLLNET_DIRECT; a <= KL_ALGO_NVLS_TREE; a++) t->max_threads[a][KL_PROTO_SIMPLE] = 640;
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

/* GB/s of one channel. */
static float channel_bandwidth(const struct terms *m)
{
    const struct kl_graph_facts *g = m->graph;
    int nnodes = m->t->in.nnodes;
    float bw = nnodes <= 2 || is_collnet(m->algo) ? g->bw_intra : g->bw_inter;

    if (m->algo == KL_ALGO_NVLS) bw = (float)lesser(g->bw_intra, g->bw_inter);
    if (m->algo == KL_ALGO_NVLS_TREE) bw = (float)lesser(g->bw_intra, nnodes <= 2 ? g->bw_inter : g->bw_inter / 2);
    return bw;
}

/* What protocols of rings and trees leave of the bandwidth. */
static float chain_bandwidth(const struct terms *m, float bus)
{
    const struct kl_tuning_constants *k = m->t->constants;
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

static float collnet_direct_bandwidth(const struct terms *m, float bus, float bw)
{
    const struct kl_tuning_input *in = &m->t->in;
    bool offered = m->func == KL_FUNC_ALL_GATHER ? in->collnet_gather : in->collnet_scatter;
    float factor, weight;

    if (gathers(m->func)) {
        bus = m->ppn * bw;
        if (in->nnodes > 1 && (!offered || m->ppn > (float)in->collnet_heads)) bus = 0;
        weight = (m->ppn - 1) / 7;
        return (float)(bus * (0.85 * weight + 0.95 * (1 - weight)));
    }
    factor = m->ppn / (float)m->graph->nchannels;
    factor -= (factor - 1) / 2;
    bus /= factor;
    return in->min_sm >= 90 ? (float)(bus * 0.85) : bus;
}

static float bus_bandwidth(const struct terms *m)
{
    float bw = channel_bandwidth(m), bus = (float)m->graph->nchannels * bw;

    if (m->algo == KL_ALGO_RING || m->algo == KL_ALGO_TREE) return chain_bandwidth(m, bus);
    if (m->algo == KL_ALGO_PAT) return (float)(bus * 0.75);
    if (is_collnet(m->algo) && m->proto != KL_PROTO_SIMPLE) return 0;
    return m->algo == KL_ALGO_COLLNET_DIRECT ? collnet_direct_bandwidth(m, bus, bw) : bus;
}

/* From what the links carry to what the user sees. */
static float algorithm_bandwidth(const struct terms *m)
{
    float bus = bus_bandwidth(m), ratio = 0.5f;

    if (gathers(m->func) && m->algo != KL_ALGO_RING) return bus;
    if (m->algo == KL_ALGO_RING) ratio = (float)((1.0 * m->t->in.nranks) / m->nsteps);
    if (is_nvls(m->algo)) ratio = (float)(5.0 / 6.0);
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
    if (m->t->in.cpu_arch == KL_ARCH_POWER && hw == KL_HW_PCI && algo == KL_ALGO_TREE && proto == KL_PROTO_SIMPLE)
        algo = KL_ALGO_RING;
    return m->t->constants->hw_latency[hw][algo][proto];
}

static float rooted_ring_latency(const struct terms *m, float latency)
{
    float hop = hw_latency(m, hardware(m), KL_ALGO_RING, m->proto);

    if (m->graph->same_channels) return latency + hop;
    if (m->proto == KL_PROTO_SIMPLE) hop = hw_latency(m, hardware(m), KL_ALGO_TREE, KL_PROTO_SIMPLE);
    return latency + (float)m->nsteps * hop;
}

static float ring_latency(const struct terms *m, float latency, float intra, float inter)
{
    int nnodes = m->t->in.nnodes, ninter = 0;
    float overhead = 0;

    if (m->func == KL_FUNC_BROADCAST || m->func == KL_FUNC_REDUCE) return rooted_ring_latency(m, latency);
    if (nnodes > 1) {
        overhead = m->proto == KL_PROTO_SIMPLE ? 3 * m->overhead : m->overhead;
        ninter = m->func == KL_FUNC_ALL_REDUCE ? 2 * (nnodes - 1) : nnodes - 1;
    }
    if (intra < overhead) intra = overhead;
    return latency + (float)(m->nsteps - ninter) * intra + (float)ninter * inter;
}

static float model_latency(const struct terms *m)
{
    const struct kl_tuning_input *in = &m->t->in;
    int intra_hw = m->graph->type_intra == KL_PATH_NVL ? KL_HW_NVLINK : KL_HW_PCI;
    int per_node = in->nranks / in->nnodes - 1, levels = kl_log2((unsigned)in->nnodes);
    float latency = m->t->constants->base_latency[m->algo][m->proto];
    float intra = hw_latency(m, intra_hw, m->algo, m->proto);
    float inter = hw_latency(m, KL_HW_NET, m->ppn == 1 ? KL_ALGO_TREE : m->algo, m->proto) + m->graph->latency_inter;

    if (m->proto == KL_PROTO_SIMPLE) inter += m->graph->latency_inter;
    switch (m->algo) {
    case KL_ALGO_RING:
        return ring_latency(m, latency, intra, inter);
    case KL_ALGO_TREE:
        return latency + 2 * ((float)per_node * intra + (float)levels * inter);
    case KL_ALGO_COLLNET_DIRECT:
        return (float)(latency + 2 * ((float)(per_node > 0) * intra + per_node * 0.4) + inter);
    case KL_ALGO_COLLNET_CHAIN:
        return latency + 2 * (float)per_node * intra + inter;
    case KL_ALGO_NVLS:
        return in->nnodes > 1 ? intra + inter : intra;
    case KL_ALGO_NVLS_TREE:
        return latency + intra + 2 * (float)levels * inter;
    default:
        return (float)(8 + levels * (inter / 3.5) + in->nranks * 2.8); /* PAT */
    }
}

/* ---- what exists ---- */

static bool pat_enabled(const struct kl_tuning_input *in, int64_t param)
{
    if (in->min_sm < 60) return false;
    return param == 2 ? in->nnodes == in->nranks && in->net_is_host : param != 0;
}

static bool is_modelled(int func, int algo, int proto, bool pat)
{
    if ((is_nvls(algo) || algo == KL_ALGO_PAT) && proto != KL_PROTO_SIMPLE) return false;
    if (algo == KL_ALGO_PAT) return pat && gathers(func);
    if (func == KL_FUNC_ALL_REDUCE) return true;
    if (gathers(func)) return algo == KL_ALGO_RING || algo == KL_ALGO_NVLS || algo == KL_ALGO_COLLNET_DIRECT;
    return algo == KL_ALGO_RING;
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

static void model_func(struct kl_tuning *t, const struct kl_tuning_params *p, int func)
{
    struct terms m = {.t = t, .func = func, .nsteps = steps_of(func, t->in.nranks)};
    bool pat = pat_enabled(&t->in, p->pat);

    m.overhead = net_overhead(&t->in, p->net_overhead);
    m.ppn = (float)t->in.nranks / (float)t->in.nnodes;
    for (m.algo = 0; m.algo < KL_ALGOS; m.algo++)
        for (m.proto = 0; m.proto < KL_PROTOS; m.proto++) {
            if (!is_modelled(func, m.algo, m.proto, pat)) continue;
            m.graph = &t->in.graph[kl_algo_graph(m.algo)];
            t->bandwidth[func][m.algo][m.proto] = algorithm_bandwidth(&m);
            t->latency[func][m.algo][m.proto] = model_latency(&m);
        }
}

/* ---- what is switched off ---- */

/* LL128 needs stores of 128 bytes to arrive whole, which NVLink and some NICs keep. */
static bool ll128_is_safe(const struct kl_tuning_input *in, int func, int algo)
{
    const struct kl_graph_facts *g = &in->graph[kl_algo_graph(algo)];
    bool inter = g->type_inter <= KL_PATH_PXB || (in->min_sm >= 90 && g->type_inter <= KL_PATH_PXN);

    if (!inter || g->type_intra > KL_PATH_NVB || in->min_sm != in->max_sm) return false;
    if (in->min_sm == 90) return !(in->cuda11 && algo == KL_ALGO_RING && func == KL_FUNC_ALL_REDUCE && in->nranks == 2);
    return in->min_sm == 70 || in->min_sm == 80 || in->min_sm == 100 || in->min_sm == 120;
}

static bool algo_is_possible(const struct kl_tuning_input *in, int algo)
{
    if (algo == KL_ALGO_NVLS_TREE) return in->nnodes > 1;
    if (algo == KL_ALGO_NVLS) return in->collnet || in->nnodes == 1;
    if (algo == KL_ALGO_COLLNET_DIRECT) return in->collnet && in->nvs;
    return algo != KL_ALGO_COLLNET_CHAIN || in->collnet;
}

enum { AUTOMATIC = 2 };

static void switch_off(struct kl_tuning *t, int algos[KL_FUNCS][KL_ALGOS], int protos[KL_FUNCS][KL_ALGOS])
{
    for (int f = 0; f < KL_FUNCS; f++)
        for (int a = 0; a < KL_ALGOS; a++)
            for (int p = 0; p < KL_PROTOS; p++) {
                bool on = protos[f][p] != 0;

                if (p == KL_PROTO_LL128 && protos[f][p] == AUTOMATIC) on = ll128_is_safe(&t->in, f, a);
                if (!on || !algos[f][a] || !algo_is_possible(&t->in, a)) t->bandwidth[f][a][p] = 0;
            }
}

static bool given(const char *text)
{
    return text && *text;
}

static ncclResult_t read_preferences(const struct kl_tuning_params *p, int algos[KL_FUNCS][KL_ALGOS],
                                     int protos[KL_FUNCS][KL_ALGOS])
{
    for (int f = 0; f < KL_FUNCS; f++) {
        for (int a = 0; a < KL_ALGOS; a++) algos[f][a] = 1;
        protos[f][KL_PROTO_LL] = protos[f][KL_PROTO_SIMPLE] = 1;
        protos[f][KL_PROTO_LL128] = AUTOMATIC;
    }
    if (given(p->proto)) KL_TRY(kl_tuning_parse("NCCL_PROTO", p->proto, kl_proto_name, KL_PROTOS, protos));
    if (given(p->algo)) KL_TRY(kl_tuning_parse("NCCL_ALGO", p->algo, kl_algo_name, KL_ALGOS, algos));
    return ncclSuccess;
}

ncclResult_t kl_tuning_compute(const struct kl_tuning_constants *constants, const struct kl_tuning_input *in,
                               const struct kl_tuning_params *params, struct kl_tuning *tuning)
{
    int algos[KL_FUNCS][KL_ALGOS], protos[KL_FUNCS][KL_ALGOS];
    struct kl_tuning t = {.constants = constants, .in = *in};

    KL_TRY(read_preferences(params, algos, protos));
    t.forced = given(params->algo) || given(params->proto);
    set_threads(&t, params);
    if (in->nranks > 1) {
        for (int f = 0; f < KL_FUNCS; f++) model_func(&t, params, f);
        switch_off(&t, algos, protos);
        set_thresholds(&t, params);
    }
    *tuning = t;
    return ncclSuccess;
}

/* ---- log ---- */

static void log_function(const struct kl_tuning *t, int func, int first, int end)
{
    char line[256];
    size_t used = (size_t)snprintf(line, sizeof line, "%13s |", kl_func_name[func]);

    for (int a = first; a < end; a++)
        for (int p = 0; p < KL_PROTOS && used < sizeof line; p++)
            used += (size_t)snprintf(line + used, sizeof line - used, "%8.1f/%6.1f |", t->latency[func][a][p],
                                     t->bandwidth[func][a][p]);
    KL_INFO(KL_TUNING, "%s", line);
}

static void log_block(const struct kl_tuning *t, int first, int end)
{
    char names[256] = "", threads_line[256] = "";
    size_t a_used = 0, t_used = 0;

    for (int a = first; a < end; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (a_used < sizeof names)
                a_used += (size_t)snprintf(names + a_used, sizeof names - a_used, "%8s %6s |", kl_algo_name[a],
                                           kl_proto_name[p]);
            if (t_used < sizeof threads_line)
                t_used += (size_t)snprintf(threads_line + t_used, sizeof threads_line - t_used, "%15d |",
                                           t->max_threads[a][p]);
        }
    KL_INFO(KL_TUNING, "%13s |%s", "Algorithm", names);
    KL_INFO(KL_TUNING, "%13s |%s", "Max NThreads", threads_line);
    for (int f = 0; f < KL_FUNCS; f++) log_function(t, f, first, end);
}

void kl_tuning_log(const struct kl_tuning *t)
{
    if (!kl_log_on(KL_LOG_INFO, KL_TUNING)) return;
    for (int a = 0; a < KL_ALGOS; a += 3) log_block(t, a, a + 3 < KL_ALGOS ? a + 3 : KL_ALGOS);
}
