/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/expected.h"

#include "graph/tuning_rules.h"

#include <math.h>

/* Fitted by tests/expected_fit.py to published tables, but for those that say otherwise. */
/* clang-format off */
const struct kl_expected_constant kl_expected_constant[KL_EXPECTED_CONSTANTS] = {
    [KL_EXPECTED_START]          = {"start",          "us",  10.7,  "to launch and end an operation"},
    [KL_EXPECTED_NET_START]      = {"net_start",      "us",  20,    "between nodes, more, where the network tells no latency of its own; not fitted: two hand-offs to a proxy thread"},
    [KL_EXPECTED_NVLS_RAMP]      = {"nvls_ramp",      "us",  93,    "until the pipelines of 8 heads of NVLS are full"},
    [KL_EXPECTED_TREE_RAMP]      = {"tree_ramp",      "us",  147,   "the same for each level of NVLSTree between nodes"},
    [KL_EXPECTED_RAMP_SIZE]      = {"ramp_size",      "MB",  26,    "at this size half of the ramp is seen: chunks are smaller below"},
    [KL_EXPECTED_TCP_RAMP]       = {"tcp_ramp",       "us",  790,   "until TCP connections are at speed"},
    [KL_EXPECTED_TCP_SIZE]       = {"tcp_size",       "MB",  1,     "at this size half of that is seen; not fitted"},
    [KL_EXPECTED_LINK_VOLTA]     = {"link_volta",     "1",   1.06,  "bandwidth of NVLinks over the model's: before sm 80"},
    [KL_EXPECTED_LINK_AMPERE]    = {"link_ampere",    "1",   0.937, "sm 80 to 89"},
    [KL_EXPECTED_LINK_HOPPER]    = {"link_hopper",    "1",   1.008, "sm 90"},
    [KL_EXPECTED_LINK_BLACKWELL] = {"link_blackwell", "1",   0.953, "sm 100 and newer"},
    [KL_EXPECTED_LINK_PAIR]      = {"link_pair",      "1",   0.831, "the same for two GPUs alone"},
    [KL_EXPECTED_NVLS_HOPPER]    = {"nvls_hopper",    "1",   0.718, "data that NVSwitches reduce over bandwidth of a GPU's NVLinks: sm 90"},
    [KL_EXPECTED_NVLS_BLACKWELL] = {"nvls_blackwell", "1",   0.647, "sm 100 and newer, up to 8 GPUs"},
    [KL_EXPECTED_NVLS_DOMAIN]    = {"nvls_domain",    "1",   0.553, "the same, larger NVLink domains"},
    [KL_EXPECTED_NET]            = {"net",            "1",   0.97,  "bandwidth of NICs over the model's: InfiniBand, RoCE, EFA"},
    [KL_EXPECTED_NET_TREE]       = {"net_tree",       "1",   0.968, "trees of two nodes, which use both directions of a NIC, over rings"},
    [KL_EXPECTED_NET_NVLS]       = {"net_nvls",       "1",   0.931, "NVLSTree of two nodes, over the model's NICs"},
    [KL_EXPECTED_NET_STAGED]     = {"net_staged",     "1",   0.65,  "networks that do not reach GPU memory; not fitted: 32 GB/s of 50 through a virtual network"},
};
/* clang-format on */

/* An operation on a machine, and the sums for it. */
struct sums {
    const struct kl_tuning *t;
    const struct kl_tuning_input *in;
    const struct kl_tuning_op *op;
    int algo, proto;
    double bus; /* bus bandwidth over algorithm bandwidth */
    double net; /* GB/s of all NICs of a node */
    double limit;
    enum kl_expected_limit by;
};

static double value(enum kl_expected_id id)
{
    return kl_expected_constant[id].value;
}

/* The bandwidth is at most this. */
static void at_most(struct sums *s, double bandwidth, enum kl_expected_limit by)
{
    if (bandwidth >= s->limit) return;
    s->limit = bandwidth;
    s->by = by;
}

/* ---- the network ---- */

/* Bandwidth of a node's NICs. The model lets rings of Grace cross sockets at 6 GB/s, which their links exceed: a GPU and its
 * NIC are on one socket there. */
static double network(const struct kl_tuning_input *in)
{
    const struct kl_graph_facts *ring = &in->graph[KL_GRAPH_RING];
    double found = (double)ring->bw_inter * ring->nchannels, own = (double)in->net_bw * in->max_local_ranks;

    return in->cpu_arch == KL_ARCH_ARM && own > found ? own : found;
}

static double net_efficiency(const struct kl_tuning_input *in)
{
    return in->net_staged ? value(KL_EXPECTED_NET_STAGED) : value(KL_EXPECTED_NET);
}

/* Data cross a NIC of two nodes once in each direction, with all NICs of a node in use even if the graph has one per GPU. In
 * trees of more nodes, and in rings, they cross it twice. */
static double tree_network(const struct sums *s, enum kl_expected_id of_two)
{
    if (s->in->nnodes > 2) return s->net / 2 * net_efficiency(s->in);
    return s->net * value(of_two) * (of_two == KL_EXPECTED_NET_NVLS && !s->in->net_staged ? 1 : net_efficiency(s->in));
}

/* ---- NVLinks ---- */

static double link_efficiency(const struct kl_tuning_input *in)
{
    bool nvlink = in->graph[KL_GRAPH_RING].type_intra == KL_PATH_NVL;

    if (!nvlink) return 1;
    if (in->min_sm < 80) return value(KL_EXPECTED_LINK_VOLTA);
    if (in->min_sm < 90) return value(KL_EXPECTED_LINK_AMPERE);
    if (in->min_sm < 100) return value(KL_EXPECTED_LINK_HOPPER);
    return value(in->nranks == 2 ? KL_EXPECTED_LINK_PAIR : KL_EXPECTED_LINK_BLACKWELL);
}

/* Whatever the release's model makes of it, and whatever the graph says of NICs: inside of a domain there are none. */
static double switches(const struct kl_tuning_input *in)
{
    if (in->min_sm < 100) return in->gpu_bw * value(KL_EXPECTED_NVLS_HOPPER);
    return in->gpu_bw * value(in->max_local_ranks > 8 ? KL_EXPECTED_NVLS_DOMAIN : KL_EXPECTED_NVLS_BLACKWELL);
}

/* ---- bandwidth ---- */

static void nvls(struct sums *s, double model)
{
    if (s->op->func != KL_FUNC_ALL_REDUCE) {
        at_most(s, model * (s->in->nnodes > 1 ? net_efficiency(s->in) : link_efficiency(s->in)),
                KL_EXPECTED_BY_SWITCHES);
        return;
    }
    at_most(s, switches(s->in), KL_EXPECTED_BY_SWITCHES);
    if (s->in->nnodes > 1) at_most(s, tree_network(s, KL_EXPECTED_NET_NVLS), KL_EXPECTED_BY_NETWORK);
}

/* The model's sockets of Grace hold back rings and trees: see network(). */
static bool trusts_inside(const struct kl_tuning_input *in)
{
    return in->cpu_arch != KL_ARCH_ARM && in->graph[KL_GRAPH_RING].type_intra == KL_PATH_NVL;
}

static void two_node_tree(struct sums *s, double model)
{
    double protocol = s->proto == KL_PROTO_SIMPLE ? 1 : 120.0 / 128;

    at_most(s, tree_network(s, KL_EXPECTED_NET_TREE) * protocol, KL_EXPECTED_BY_NETWORK);
    if (trusts_inside(s->in)) at_most(s, model * link_efficiency(s->in), KL_EXPECTED_BY_LINKS);
}

static void ring(struct sums *s)
{
    const struct kl_graph_facts *g = &s->in->graph[KL_GRAPH_RING];

    at_most(s, s->net * net_efficiency(s->in) / s->bus, KL_EXPECTED_BY_NETWORK);
    if (s->in->cpu_arch != KL_ARCH_ARM)
        at_most(s, g->nchannels * (double)g->bw_intra * link_efficiency(s->in) / s->bus, KL_EXPECTED_BY_LINKS);
}

/* `model`: GB/s of the model at this size. */
static void bandwidth(struct sums *s, double model)
{
    const struct kl_tuning_input *in = s->in;
    bool tree = s->algo == KL_ALGO_TREE && s->op->func == KL_FUNC_ALL_REDUCE;

    if (kl_algo_is_nvls(s->algo))
        nvls(s, model);
    else if (in->nnodes == 1)
        at_most(s, model * link_efficiency(in), KL_EXPECTED_BY_LINKS);
    else if (tree && in->nnodes == 2 && s->proto != KL_PROTO_LL)
        two_node_tree(s, model);
    else if (s->proto != KL_PROTO_SIMPLE || s->algo == KL_ALGO_PAT)
        at_most(s, model * net_efficiency(in), KL_EXPECTED_BY_MODEL);
    else if (tree)
        at_most(s, tree_network(s, KL_EXPECTED_NET_TREE), KL_EXPECTED_BY_NETWORK);
    else
        ring(s);
}

/* ---- ramp ---- */

/* Chunks grow with the size, and with them the time to fill and drain a pipeline, up to the largest chunk. */
static double grown(int64_t bytes, enum kl_expected_id half)
{
    return (double)bytes / ((double)bytes + value(half) * 1e6);
}

static double ramp(const struct sums *s)
{
    double heads = s->in->graph[KL_GRAPH_NVLS].nchannels, levels = log2(s->in->nnodes);

    if (!kl_algo_is_nvls(s->algo)) return 0;
    return (value(KL_EXPECTED_NVLS_RAMP) * heads / 8 + value(KL_EXPECTED_TREE_RAMP) * levels) *
           grown(s->op->bytes, KL_EXPECTED_RAMP_SIZE);
}

static double tcp(const struct sums *s)
{
    if (s->in->nnodes == 1 || !s->in->net_tcp) return 0;
    return value(KL_EXPECTED_TCP_RAMP) * grown(s->op->bytes, KL_EXPECTED_TCP_SIZE);
}

static double start(const struct sums *s)
{
    bool own = s->in->graph[kl_algo_graph((enum kl_algo)s->algo)].latency_inter > 0;
    bool more = s->in->nnodes > 1 && !own && s->algo != KL_ALGO_NVLS_TREE;

    return value(KL_EXPECTED_START) + (more ? value(KL_EXPECTED_NET_START) : 0);
}

/* ---- all together ---- */

static bool is_known(const struct kl_tuning *t, const struct kl_tuning_terms *x, int algo)
{
    return t->at.follows_nccl && t->in.nranks > 1 && !kl_algo_is_collnet(algo) && x->fp8 <= 0 && x->bandwidth > 0;
}

struct kl_expected kl_expected_of(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    struct sums s = {t, &t->in, op, algo, proto, kl_tuning_bus_factor(op->func, t->in.nranks), 0, INFINITY, 0};
    struct kl_expected e = {0};
    struct kl_tuning_terms x;

    kl_tuning_terms(t, op, algo, proto, &x);
    if (!is_known(t, &x, algo)) return e;
    s.net = network(s.in);
    bandwidth(&s, (double)x.bandwidth);
    if (!(s.limit > 0) || isinf(s.limit)) return e;
    e.latency = x.time - x.transfer;
    e.start = (float)start(&s);
    e.ramp = (float)ramp(&s);
    e.tcp = (float)tcp(&s);
    e.transfer = (float)((double)op->bytes / s.limit / 1e3);
    e.time = e.latency + e.start + e.ramp + e.tcp + e.transfer;
    e.bandwidth = (float)s.limit;
    e.limit = s.by;
    return e;
}

const char *kl_expected_limit_name(enum kl_expected_limit limit)
{
    static const char *const names[] = {"model", "nvlink", "nvswitch", "network"};

    return names[limit];
}
