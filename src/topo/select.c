/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/paths.h"

#include <stdlib.h>

enum { MAX_CHANNELS = 64 };

int kl_topo_nearest(const struct kl_topo *t, enum kl_node_type from, int i, enum kl_node_type to, int *out)
{
    float bw = 0;
    int type = KL_PATH_DIS, n = 0;

    if (!kl_path_has_table(t, kl_topo_at(t, from, i), to)) return 0;
    for (int k = 0; k < t->count[to]; k++) {
        const struct kl_path *p = kl_path_between(t, from, i, to, k);

        if (p->bw > bw || (p->bw == bw && p->type < type)) {
            bw = p->bw;
            type = p->type;
            n = 0;
        }
        if (p->bw == bw && p->type == type) out[n++] = k;
    }
    return n;
}

/* ---- NET of a GPU ---- */

/* The NETs near a GPU, and how its channels spread over them; computed once for many channels. */
struct choice {
    int *net;        /* nearest NETs */
    int nnets, step; /* step: number of NETs over which the channels of one GPU spread */
    int start;
};

/* The low `bits` bits of x the other way round. */
static int mirrored(int x, int bits)
{
    int y = 0;

    for (int b = 0; b < bits; b++)
        if (x >> b & 1) y |= 1 << (bits - 1 - b);
    return y;
}

static int bits_of(int power_of_two)
{
    int bits = 0;

    while (1 << bits < power_of_two) bits++;
    return bits;
}

/* The number of its nearest NETs over which a GPU spreads. */
static int step_of(const struct kl_topo *t, int nnets, int ngpus)
{
    int most = kl_nccl_has(t->options.nccl, KL_CHANGE_NETDEVS_POLICY) ? t->options.netdevs : KL_NETDEVS_AUTO;

    if (most == KL_NETDEVS_AUTO) return (nnets + ngpus - 1) / ngpus;
    return most > 0 && most < nnets ? most : nnets;
}

/* `scratch` holds count[GPU] + count[NET]; the choice points into it. False when the GPU reaches no NET. */
static bool make_choice(const struct kl_topo *t, int gpu, int *scratch, struct choice *c)
{
    int dev = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.dev;

    c->net = scratch + t->count[KL_NODE_GPU];
    c->nnets = kl_topo_nearest(t, KL_NODE_GPU, gpu, KL_NODE_NET, c->net);
    if (!c->nnets) return false;
    int ngpus = kl_topo_nearest(t, KL_NODE_NET, c->net[0], KL_NODE_GPU, scratch); /* that share them */
    if (!ngpus) ngpus = 1;
    c->step = step_of(t, c->nnets, ngpus);
    c->start = dev > 0 ? dev : 0;
    if (kl_nccl_has(t->options.nccl, KL_CHANGE_NET_BY_RAIL)) c->start %= ngpus;
    if (!(c->nnets & (c->nnets - 1))) c->start = mirrored(c->start, bits_of(c->nnets));
    c->start %= c->nnets;
    return true;
}

static int choose(const struct choice *c, int channel)
{
    return c->net[(c->start + channel % c->step) % c->nnets];
}

static int *make_scratch(const struct kl_topo *t)
{
    return malloc(((size_t)t->count[KL_NODE_GPU] + (size_t)t->count[KL_NODE_NET] + 1) * sizeof(int));
}

static void describe(const struct kl_topo *t, int gpu, int channel, const struct choice *c, struct kl_net_choice *out)
{
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, c->net[0]);

    *out = (struct kl_net_choice){
        .net = choose(c, channel), .near = c->nnets, .spread = c->step, .type = p->type, .bw = p->bw};
}

ncclResult_t kl_topo_net_choice(const struct kl_topo *t, int gpu, int channel, struct kl_net_choice *out)
{
    int *scratch = make_scratch(t);
    struct choice c;
    char text[KL_NODE_TEXT];

    if (!scratch) return KL_NOMEM("a choice of NETs");
    bool found = make_choice(t, gpu, scratch, &c);
    if (found) describe(t, gpu, channel, &c, out);
    free(scratch);
    if (!found)
        return KL_FAIL(ncclInternalError, "%s reaches no NET",
                       kl_node_text(&t->node[kl_topo_at(t, KL_NODE_GPU, gpu)], text));
    return ncclSuccess;
}

ncclResult_t kl_topo_local_net(const struct kl_topo *t, int gpu, int channel, int *net)
{
    struct kl_net_choice choice;

    KL_TRY(kl_topo_net_choice(t, gpu, channel, &choice));
    *net = choice.net;
    return ncclSuccess;
}

/* ---- GPU of a NET ---- */

static bool same_id(const struct kl_topo *t, int net_a, int net_b)
{
    return t->node[kl_topo_at(t, KL_NODE_NET, net_a)].id == t->node[kl_topo_at(t, KL_NODE_NET, net_b)].id;
}

/* First channel for which a GPU uses the NET; MAX_CHANNELS if it never does. */
static int first_use(const struct kl_topo *t, int gpu, int net, int *scratch)
{
    struct choice c;
    int channel = 0;

    if (!make_choice(t, gpu, scratch, &c)) return MAX_CHANNELS;
    while (channel < MAX_CHANNELS && !same_id(t, choose(&c, channel), net)) channel++;
    return channel;
}

int kl_topo_local_gpu(const struct kl_topo *t, int net)
{
    int *scratch = make_scratch(t), *gpu = make_scratch(t);
    int best = -1, earliest = MAX_CHANNELS;

    if (scratch && gpu) {
        int n = kl_topo_nearest(t, KL_NODE_NET, net, KL_NODE_GPU, gpu);

        for (int i = 0; i < n && earliest > 0; i++) {
            int use = first_use(t, gpu[i], net, scratch);
            if (use >= earliest) continue;
            earliest = use;
            best = gpu[i];
        }
    }
    free(scratch);
    free(gpu);
    return best;
}

/* ---- NETs in the order a search tries them ---- */

struct net_list {
    int *net, n, most;
    bool *listed; /* per NET */
};

static void append(struct net_list *l, int net)
{
    if (l->listed[net] || l->n >= l->most) return;
    l->listed[net] = true;
    l->net[l->n++] = net;
}

/* A GPU's own NETs in channel order, until the first comes again; from channel `first` on, at most `n`. False: no more. */
static ncclResult_t append_own(const struct kl_topo *t, int gpu, int first, int n, int *scratch, struct net_list *l,
                               bool *more)
{
    struct choice c;
    char text[KL_NODE_TEXT];

    if (!make_choice(t, gpu, scratch, &c))
        return KL_FAIL(ncclInternalError, "%s reaches no NET",
                       kl_node_text(&t->node[kl_topo_at(t, KL_NODE_GPU, gpu)], text));
    *more = true;
    for (int channel = first; channel < first + n; channel++) {
        *more = !channel || choose(&c, channel) != choose(&c, 0);
        if (!*more) break;
        append(l, choose(&c, channel));
    }
    return ncclSuccess;
}

/* One GPU after the other. */
static ncclResult_t append_by_gpu(const struct kl_topo *t, int first, int end, int *scratch, struct net_list *l)
{
    bool more;

    for (int g = first; g < end; g++) KL_TRY(append_own(t, g, 0, MAX_CHANNELS, scratch, l, &more));
    return ncclSuccess;
}

/* One channel after the other. */
static ncclResult_t append_by_channel(const struct kl_topo *t, int first, int end, int *scratch, struct net_list *l)
{
    bool *done = calloc((size_t)t->count[KL_NODE_GPU] + 1, sizeof *done), more;
    ncclResult_t rc = done ? ncclSuccess : KL_NOMEM("a list of NETs");

    for (int channel = 0, left = end - first; !rc && left > 0 && channel < MAX_CHANNELS; channel++)
        for (int g = first; !rc && g < end; g++) {
            if (done[g]) continue;
            rc = append_own(t, g, channel, 1, scratch, l, &more);
            done[g] = !rc && !more;
            left -= done[g];
        }
    free(done);
    return rc;
}

/* NETs of a domain of several hosts take turns, so that channels use all hosts'. */
static bool scatters(const struct kl_topo *t)
{
    return t->nhosts > 1 && t->options.scatter_nets && kl_nccl_has(t->options.nccl, KL_CHANGE_SCATTER_NETS);
}

/* The longest list for a number of GPUs. */
static int list_limit(const struct kl_topo *t, int ngpus)
{
    int most = t->options.netdevs;

    if (most <= 0 || !kl_nccl_has(t->options.nccl, KL_CHANGE_NET_LIST_LIMIT) || most > INT32_MAX / (ngpus + 1))
        return INT32_MAX;
    return most * ngpus;
}

static void append_of_type(const struct kl_topo *t, int gpu, int type, struct net_list *l)
{
    for (int n = 0; n < t->count[KL_NODE_NET]; n++)
        if (kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, n)->type == type) append(l, n);
}

ncclResult_t kl_topo_net_list(const struct kl_topo *t, int max_type, int gpu, int *out, int *n)
{
    int first = gpu < 0 ? 0 : gpu, end = gpu < 0 ? t->count[KL_NODE_GPU] : gpu + 1, *scratch = make_scratch(t);
    struct net_list l = {.net = out,
                         .most = list_limit(t, end - first),
                         .listed = calloc((size_t)t->count[KL_NODE_NET] + 1, sizeof *l.listed)};
    ncclResult_t rc = ncclSuccess;

    KL_TRY_OR(rc, out, scratch && l.listed ? ncclSuccess : KL_NOMEM("a list of NETs"));
    KL_TRY_OR(rc, out, (scatters(t) ? append_by_channel : append_by_gpu)(t, first, end, scratch, &l));
    for (int type = KL_PATH_LOC; type <= max_type; type++)
        for (int g = first; g < end; g++) append_of_type(t, g, type, &l);
    *n = l.n;
out:
    free(scratch);
    free(l.listed);
    return rc;
}

/* ---- point to point ---- */

/* The GPU of this host on the peer's rail: with the peer's device number. */
static int rail_gpu(const struct kl_topo *t, int dev)
{
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        const struct kl_node *n = &t->node[kl_topo_at(t, KL_NODE_GPU, g)];
        if (kl_id_host(n->id) == t->own_host && n->gpu.dev == dev) return g;
    }
    return -1;
}

/* As much PXN as possible: the NIC of the rail through the GPU next to it, if NVLink leads there. */
static enum kl_p2p_net_why judge_relay(const struct kl_topo *t, int gpu, int relay, int net)
{
    if (relay < 0) return KL_P2P_NET_NO_RELAY;
    if (kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_GPU, gpu)->type > KL_PATH_NVL) return KL_P2P_NET_NO_NVLINK;
    int limit = kl_nccl_has(t->options.nccl, KL_CHANGE_P2P_PXN_C2C) ? kl_path_relay_limit(t) : KL_PATH_PXB;
    if (kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_NET, net)->type > limit) return KL_P2P_NET_RELAY_FAR;
    return KL_P2P_NET_RAIL;
}

/* The rank of the GPU that leads to the rail's NIC. */
static ncclResult_t reach_rail(const struct kl_topo *t, int gpu, int net, int level, struct kl_p2p_net *answer)
{
    int rank = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.rank, relay;

    if (level == 1) {
        answer->why = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->type > KL_PATH_PXN ? KL_P2P_NET_RAIL_FAR
                                                                                                 : KL_P2P_NET_RAIL;
        return answer->why == KL_P2P_NET_RAIL ? kl_topo_pxn_rank(t, rank, net, &answer->proxy) : ncclSuccess;
    }
    relay = kl_topo_local_gpu(t, net);
    answer->why = judge_relay(t, gpu, relay, net);
    if (answer->why == KL_P2P_NET_RAIL && kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_NEEDS_GDR)) {
        struct kl_gdr gdr;

        KL_TRY(kl_topo_gdr(t, t->node[kl_topo_at(t, KL_NODE_GPU, relay)].gpu.rank, net, false, &gdr));
        if (gdr.mode == KL_GDR_OFF) answer->why = KL_P2P_NET_RELAY_NO_GDR;
    }
    if (answer->why == KL_P2P_NET_RAIL) answer->proxy = t->node[kl_topo_at(t, KL_NODE_GPU, relay)].gpu.rank;
    return ncclSuccess;
}

ncclResult_t kl_topo_p2p_net(const struct kl_topo *t, int rank, int peer_dev, int channel, struct kl_p2p_net *answer)
{
    int gpu = kl_topo_gpu_of_rank(t, rank), level = t->options.pxn_disable ? 0 : t->options.p2p_pxn_level, net;
    bool same_rail = t->options.cross_nic == 0;

    if (gpu < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank);
    *answer = (struct kl_p2p_net){.proxy = rank, .why = KL_P2P_NET_NO_PXN};
    KL_TRY(kl_topo_local_net(t, gpu, channel, &answer->net));
    if (!same_rail && !level) return ncclSuccess;
    int rail = rail_gpu(t, peer_dev);
    answer->why = KL_P2P_NET_NO_RAIL;
    if (rail < 0) return ncclSuccess;
    KL_TRY(kl_topo_local_net(t, rail, channel, &net));
    if (level) KL_TRY(reach_rail(t, gpu, net, level, answer));
    if (answer->why != KL_P2P_NET_RAIL && same_rail) answer->why = KL_P2P_NET_CROSS_NIC;
    if (answer->why == KL_P2P_NET_RAIL || same_rail) answer->net = net;
    return ncclSuccess;
}

/* ---- CPUs ---- */

bool kl_topo_affinity(const struct kl_topo *t, int gpu, const struct kl_cpuset *allowed, struct kl_cpuset *cpus)
{
    int cpu;

    if (kl_path_cpu_of_gpu(t, gpu, &cpu)) return false;
    struct kl_cpuset near = t->cpuset[t->node[kl_topo_at(t, KL_NODE_CPU, cpu)].cpu.cpus];
    if (!t->options.ignore_cpu_affinity) kl_cpuset_intersect(&near, allowed);
    if (!kl_cpuset_count(&near)) return false;
    *cpus = near;
    return true;
}
