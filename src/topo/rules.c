/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/paths_make.h"

#include <stdlib.h>
#include <string.h>

static struct kl_path *path_at(struct kl_topo *t, enum kl_node_type from, int i, enum kl_node_type to, int j)
{
    return &t->path[from][to][(size_t)i * (size_t)t->count[to] + (size_t)j];
}

static void copy_hops(struct kl_topo *t, const struct kl_path *p)
{
    if (p->hops) memcpy(t->hop + t->nhops, t->hop + p->first, p->hops * sizeof *t->hop);
    t->nhops += p->hops;
}

static uint8_t type_of_legs(const struct kl_topo *t, uint8_t x, uint8_t y)
{
    if (kl_nccl_has(t->options.nccl, KL_CHANGE_P2C_LEGS) &&
        ((x == KL_PATH_C2C && y == KL_PATH_PHB) || (x == KL_PATH_PHB && y == KL_PATH_C2C)))
        return KL_PATH_P2C;
    return x > y ? x : y;
}

/* Reroute the path from `a` to `b` over `via`. */
static ncclResult_t reroute(struct kl_topo *t, int a, int via, int b, enum kl_path_rule rule)
{
    enum kl_node_type from = t->node[a].type, to = t->node[b].type;
    struct kl_path x = *kl_path(t, a, via), y = *kl_path(t, via, b), old = *kl_path(t, a, b);
    uint32_t first = t->nhops, hops = (uint32_t)x.hops + y.hops;

    if (hops > UINT16_MAX) return KL_FAIL(ncclInternalError, "a path of %u links", (unsigned)hops);
    KL_TRY(kl_path_reserve(t, hops));
    copy_hops(t, &x);
    copy_hops(t, &y);
    *path_at(t, from, kl_topo_index(t, a), to, kl_topo_index(t, b)) =
        (struct kl_path){.first = first,
                         .hops = (uint16_t)hops,
                         .type = t->node[via].type == KL_NODE_GPU ? KL_PATH_PXN : type_of_legs(t, x.type, y.type),
                         .rule = (uint8_t)(rule & 15),
                         .was = old.was,
                         .bw = x.bw < y.bw ? x.bw : y.bw};
    return ncclSuccess;
}

/* ---- between GPUs ---- */

/* `cpu`: the one near g, -1 before it is looked up. */
static ncclResult_t settle_gpu_pair(struct kl_topo *t, int p, int g, int *cpu)
{
    int from = kl_topo_at(t, KL_NODE_GPU, p), to = kl_topo_at(t, KL_NODE_GPU, g);
    struct kl_p2p answer;

    KL_TRY(kl_topo_p2p(t, t->node[from].gpu.rank, t->node[to].gpu.rank, &answer));
    if (answer.p2p) return ncclSuccess;
    if (*cpu < 0) KL_TRY(kl_path_cpu_of_gpu(t, g, cpu));
    return reroute(t, from, kl_topo_at(t, KL_NODE_CPU, *cpu), to, KL_RULE_P2P_OFF);
}

static ncclResult_t settle_transport(struct kl_topo *t, int p, int g)
{
    const struct kl_node *a = &t->node[kl_topo_at(t, KL_NODE_GPU, p)], *b = &t->node[kl_topo_at(t, KL_NODE_GPU, g)];
    struct kl_p2p answer;

    KL_TRY(kl_topo_p2p_transport(t, a->gpu.rank, b->gpu.rank, &answer));
    if (answer.p2p || kl_topo_shm(t, a->gpu.rank, b->gpu.rank) == KL_SHM_ALLOWED) return ncclSuccess;
    struct kl_path *path = path_at(t, KL_NODE_GPU, p, KL_NODE_GPU, g);
    path->type = KL_PATH_NET;
    path->rule = KL_RULE_NET_FASTER;
    return ncclSuccess;
}

static ncclResult_t settle_gpus(struct kl_topo *t)
{
    int ngpus = t->count[KL_NODE_GPU];

    for (int g = 0; g < ngpus; g++) {
        int cpu = -1;

        for (int p = 0; p < ngpus; p++) KL_TRY(settle_gpu_pair(t, p, g, &cpu));
        for (int p = 0; t->options.communicator && p < ngpus; p++)
            if (p != g) KL_TRY(settle_transport(t, p, g));
    }
    return ncclSuccess;
}

/* ---- GPU and NIC ---- */

static void mark_p2c(struct kl_topo *t, int gpu, int net)
{
    struct kl_path *way[] = {path_at(t, KL_NODE_GPU, gpu, KL_NODE_NET, net),
                             path_at(t, KL_NODE_NET, net, KL_NODE_GPU, gpu)};

    for (int i = 0; i < 2; i++)
        if (way[i]->type > KL_PATH_P2C) way[i]->type = way[i]->was = KL_PATH_P2C;
}

/* Does the way from GPU to NIC lead over C2C to the CPU, and over its PCIe? */
static bool is_p2c(const struct kl_topo *t, int gpu, int net, int cpu)
{
    int to_cpu = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, cpu)->type;
    int from_net = kl_path_between(t, KL_NODE_NET, net, KL_NODE_CPU, cpu)->type;

    if (!kl_nccl_has(t->options.nccl, KL_CHANGE_P2C_BY_CPU))
        return to_cpu == KL_PATH_C2C && kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->type == KL_PATH_PHB;
    return (to_cpu == KL_PATH_C2C && from_net == KL_PATH_PHB) || (to_cpu == KL_PATH_PHB && from_net == KL_PATH_C2C);
}

/* `nets`: the NETs that are asked about, by index. */
static ncclResult_t settle_p2c(struct kl_topo *t, int gpu, const int *nets, int nnets)
{
    int cpu;

    if (!nnets) return ncclSuccess;
    KL_TRY(kl_path_cpu_of_gpu(t, gpu, &cpu));
    for (int i = 0; i < nnets; i++)
        if (is_p2c(t, gpu, nets[i], cpu)) mark_p2c(t, gpu, nets[i]);
    return ncclSuccess;
}

static ncclResult_t settle_c2c(struct kl_topo *t)
{
    int nnets = t->count[KL_NODE_NET];
    bool nearest = kl_nccl_has(t->options.nccl, KL_CHANGE_P2C_NEAREST);
    int *nets = kl_nccl_has(t->options.nccl, KL_CHANGE_P2C) ? malloc(((size_t)nnets + 1) * sizeof *nets) : NULL;
    ncclResult_t rc = ncclSuccess;

    if (!nets) return kl_nccl_has(t->options.nccl, KL_CHANGE_P2C) ? KL_NOMEM("paths") : ncclSuccess;
    for (int i = 0; i < nnets; i++) nets[i] = i;
    for (int g = 0; !rc && g < t->count[KL_NODE_GPU]; g++) {
        int n = nearest ? kl_topo_nearest(t, KL_NODE_GPU, g, KL_NODE_NET, nets) : nnets;

        rc = settle_p2c(t, g, nets, n);
    }
    free(nets);
    return rc;
}

/* NVLinks may lead over a CPU (POWER); a relay must be reached without. */
static bool passes_cpu(const struct kl_topo *t, const struct kl_path *p)
{
    const int32_t *hop = kl_path_hops(t, p);

    for (int k = 0; k < p->hops; k++)
        if (t->node[t->link[hop[k]].to].type == KL_NODE_CPU) return true;
    return false;
}

/* A GPU as near to a NIC as this uses a relay only if that is faster. */
static int content_with(const struct kl_topo *t)
{
    if (kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_BEHIND_PXN)) return KL_PATH_PXN;
    return kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_BY_LEVEL) ? kl_path_relay_limit(t) : KL_PATH_PXB;
}

/* The reason against sending through the relay, if there is one. */
static enum kl_pxn_why judge_pxn(const struct kl_topo *t, int relay, int gpu, int net)
{
    const struct kl_path *near = kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_NET, net);
    const struct kl_path *own = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);
    const struct kl_path *back = kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_GPU, gpu);
    const struct kl_path *out = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_GPU, relay);
    const struct kl_node *a = &t->node[kl_topo_at(t, KL_NODE_GPU, relay)],
                         *b = &t->node[kl_topo_at(t, KL_NODE_GPU, gpu)];

    if (kl_id_host(a->id) != kl_id_host(b->id)) return KL_PXN_OTHER_HOST;
    if (near->type > kl_path_relay_limit(t)) return KL_PXN_RELAY_FAR;
    if (back->type > KL_PATH_NVL) return KL_PXN_NO_NVLINK;
    if (near->bw <= own->bw && own->type <= content_with(t)) return KL_PXN_NO_BETTER;
    return passes_cpu(t, out) ? KL_PXN_OVER_CPU : KL_PXN_USED;
}

/* `relay`: the NIC's GPU, -1 for none; unused if PXN is off. */
static ncclResult_t settle_pxn(struct kl_topo *t, int relay, int gpu, int net, bool *changed)
{
    struct kl_pxn *answer = &t->pxn[(size_t)gpu * (size_t)t->count[KL_NODE_NET] + (size_t)net];

    answer->relay = relay;
    if (t->options.pxn_disable)
        answer->why = KL_PXN_DISABLED;
    else if (relay < 0)
        answer->why = KL_PXN_NO_GPU;
    else
        answer->why = relay == gpu ? KL_PXN_OWN : judge_pxn(t, relay, gpu, net);
    if (answer->why == KL_PXN_USED && kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_NEEDS_GDR)) {
        struct kl_gdr gdr;

        KL_TRY(kl_topo_gdr(t, t->node[kl_topo_at(t, KL_NODE_GPU, relay)].gpu.rank, net, true, &gdr));
        if (gdr.mode == KL_GDR_OFF) answer->why = KL_PXN_NO_GDR;
    }
    if (answer->why != KL_PXN_USED) return ncclSuccess;
    *changed = true;
    return reroute(t, kl_topo_at(t, KL_NODE_GPU, gpu), kl_topo_at(t, KL_NODE_GPU, relay),
                   kl_topo_at(t, KL_NODE_NET, net), KL_RULE_PXN);
}

static ncclResult_t settle_gdr(struct kl_topo *t, int gpu, int net, bool *changed)
{
    int g = kl_topo_at(t, KL_NODE_GPU, gpu), n = kl_topo_at(t, KL_NODE_NET, net), cpu = 0;
    struct kl_pxn *pxn = &t->pxn[(size_t)gpu * (size_t)t->count[KL_NODE_NET] + (size_t)net];
    struct kl_gdr gdr;

    if (kl_path(t, g, n)->type >= KL_PATH_PHB) return ncclSuccess;
    KL_TRY(kl_topo_gdr(t, t->node[g].gpu.rank, net, false, &gdr));
    if (gdr.mode != KL_GDR_OFF) return ncclSuccess;
    KL_TRY(kl_path_cpu_of_gpu(t, gpu, &cpu));
    cpu = kl_topo_at(t, KL_NODE_CPU, cpu);
    *changed = true;
    if (pxn->why == KL_PXN_USED) pxn->why = KL_PXN_NO_GDR;
    KL_TRY(reroute(t, n, cpu, g, KL_RULE_GDR_OFF));
    return reroute(t, g, cpu, n, KL_RULE_GDR_OFF);
}

/*
 * Which GPU is local to a NET follows from the paths as they are by now, so it is asked again after every change, and
 * only then. Hostile machines change something for every pair; the bound keeps them from taking hours.
 */
static ncclResult_t settle_nets(struct kl_topo *t)
{
    uint64_t asked = 0;
    int relay = -1;

    for (int n = 0; n < t->count[KL_NODE_NET]; n++) {
        bool changed = true;

        for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
            if (changed && !t->options.pxn_disable) {
                relay = kl_topo_local_gpu(t, n);
                asked += (uint64_t)t->count[KL_NODE_GPU] + (uint64_t)t->count[KL_NODE_NET];
                if (asked > (uint64_t)1 << 28) return KL_FAIL(ncclInternalError, "too many GPUs and NETs for PXN");
            }
            changed = false;
            KL_TRY(settle_pxn(t, relay, g, n, &changed));
            KL_TRY(settle_gdr(t, g, n, &changed));
        }
    }
    return ncclSuccess;
}

/* Fill `near_net` from the paths as they are. */
static void note_near_nets(struct kl_topo *t)
{
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        t->near_net[g] = 0;
        for (int n = 0; n < t->count[KL_NODE_NET]; n++) {
            const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, g, KL_NODE_NET, n);
            if (p->type <= KL_PATH_PXB && p->bw > t->near_net[g]) t->near_net[g] = p->bw;
        }
    }
}

ncclResult_t kl_path_apply_rules(struct kl_topo *t)
{
    note_near_nets(t);
    KL_TRY(settle_gpus(t));
    KL_TRY(settle_c2c(t));
    KL_TRY(settle_nets(t));
    note_near_nets(t);
    return ncclSuccess;
}
