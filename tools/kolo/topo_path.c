/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/topo_name.h"
#include "tools/kolo/topo_text.h"
#include "topo/paths.h"

static const char *const meanings[KL_PATH_TYPES] = {
    [KL_PATH_LOC] = "the node itself",
    [KL_PATH_NVL] = "NVLink, direct or through NVSwitch",
    [KL_PATH_NVB] = "NVLink through one GPU in between",
    [KL_PATH_C2C] = "the chip-to-chip link between GPU and CPU",
    [KL_PATH_PIX] = "at most one PCI switch",
    [KL_PATH_PXB] = "several PCI switches, no host bridge",
    [KL_PATH_PXN] = "through another GPU, which is near the NIC",
    [KL_PATH_PHB] = "through a PCI host bridge, that is a CPU",
    [KL_PATH_SYS] = "through the link between CPU sockets",
    [KL_PATH_NET] = "through the network",
    [KL_PATH_DIS] = "not connected",
};

static const char *const rules[] = {
    [KL_RULE_SHORTEST] = "fewest links, and the widest of these paths",
    [KL_RULE_P2P_OFF] = "P2P is not used here, so through the memory of the CPU near the destination",
    [KL_RULE_PXN] = "PXN: another GPU next to the NIC reaches it better, and NVLink leads there",
    [KL_RULE_GDR_OFF] = "GPUDirect RDMA is not used here, so through the memory of the CPU near the GPU",
    [KL_RULE_NET_FASTER] = "neither P2P nor shared memory join these ranks, so the network does",
};

static int narrowest(const struct kl_topo *t, const struct kl_path *p)
{
    int at = 0;

    for (int k = 1; k < p->hops; k++)
        if (t->link[kl_path_hops(t, p)[k]].bw < t->link[kl_path_hops(t, p)[at]].bw) at = k;
    return at;
}

static void print_links(const struct kl_topo *t, const struct kl_path *p, FILE *to)
{
    char from[KL_NODE_TEXT], far[KL_NODE_TEXT];
    int narrow = narrowest(t, p);

    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        fprintf(to, "  %-18s %s %8g GB/s  %s%s\n", kl_topo_name(t, l->from, from), kl_link_type_name[l->type],
                (double)l->bw, kl_topo_name(t, l->to, far), k == narrow ? "   <- bottleneck" : "");
    }
}

/* ---- GPU to GPU ---- */

static void explain_p2p(const struct kl_topo *t, const struct kl_node *a, const struct kl_node *b, FILE *to)
{
    const struct kl_path *p = kl_path(t, (int)(a - t->node), (int)(b - t->node));
    struct kl_p2p answer;

    if (a == b || kl_topo_p2p(t, a->gpu.rank, b->gpu.rank, &answer)) return;
    if (answer.p2p)
        fprintf(to, "P2P: yes, %s is within %s%s\n", kl_path_type_name[p->type], kl_path_type_name[answer.level],
                answer.read ? "; reading is preferred" : "");
    else if (kl_id_host(a->id) != kl_id_host(b->id) && !t->options.mnnvl)
        fprintf(to, "P2P: no, the GPUs are in different hosts\n");
    else
        fprintf(to, "P2P: no, the limit is %s (%s)\n", kl_path_type_name[answer.level],
                t->options.p2p_level >= 0 ? "NCCL_P2P_LEVEL or NCCL_P2P_DISABLE"
                                          : "the default; NCCL_P2P_LEVEL changes it");
    if (answer.via >= 0) fprintf(to, "     through the GPU of rank %d\n", answer.via);
    fprintf(to, "Shared memory: %s\n",
            kl_topo_shm(t, a->gpu.rank, b->gpu.rank)          ? "yes"
            : kl_topo_net_faster(t, a->gpu.rank, b->gpu.rank) ? "no, both GPUs reach a NIC faster than each other"
                                                              : "no");
}

/* ---- GPU to NIC ---- */

static const char *why_no_gdr(const struct kl_topo *t, const struct kl_node *gpu, int net, bool read)
{
    enum kl_gdr_mode other = KL_GDR_OFF;

    if (!t->node[kl_topo_at(t, KL_NODE_NET, net)].net.gdr) return "the NIC cannot";
    if (!gpu->gpu.gdr) return "the GPU cannot";
    if (read && !kl_topo_gdr(t, gpu->gpu.rank, net, false, &other) && other)
        return t->options.gdr_read == 0 ? "NCCL_NET_GDR_READ=0"
                                        : "without NVLink GPUs before sm 80 send from CPU memory";
    return t->options.gdr_level >= 0 ? "farther than NCCL_NET_GDR_LEVEL"
                                     : "farther than PXB; NCCL_NET_GDR_LEVEL changes the limit";
}

static void explain_gdr(const struct kl_topo *t, const struct kl_node *gpu, int net, bool read, FILE *to)
{
    enum kl_gdr_mode mode = KL_GDR_OFF;

    if (kl_topo_gdr(t, gpu->gpu.rank, net, read, &mode)) return;
    fprintf(to, "GPUDirect for %s: ", read ? "sending" : "receiving");
    if (mode == KL_GDR_OFF)
        fprintf(to, "no, %s\n", why_no_gdr(t, gpu, net, read));
    else
        fprintf(to, "yes%s\n", mode == KL_GDR_PCI ? ", mapped over PCI" : "");
}

static void explain_pxn(const struct kl_topo *t, const struct kl_node *gpu, int net, FILE *to)
{
    int relay = kl_topo_local_gpu(t, net), own = kl_topo_gpu_of_rank(t, gpu->gpu.rank), rank = 0;

    if (!kl_topo_pxn_rank(t, gpu->gpu.rank, net, &rank) && rank != gpu->gpu.rank) {
        fprintf(to, "PXN: yes, sending goes through GPU/%d\n", rank);
        return;
    }
    fputs("PXN: no, ", to);
    if (t->options.pxn_disable)
        fputs("NCCL_PXN_DISABLE=1\n", to);
    else if (relay < 0)
        fputs("no GPU uses this NIC first\n", to);
    else if (relay == own)
        fputs("this is the NIC's own GPU\n", to);
    else if (kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_NET, net)->type > KL_PATH_PXB)
        fputs("the NIC's own GPU is farther than PXB from it\n", to);
    else if (kl_path_between(t, KL_NODE_GPU, relay, KL_NODE_GPU, own)->type > KL_PATH_NVL)
        fprintf(to, "NVLink does not lead to GPU/%d next to it\n", t->node[kl_topo_at(t, KL_NODE_GPU, relay)].gpu.rank);
    else
        fputs("the direct path is as good\n", to);
}

static void explain_nic(const struct kl_topo *t, const struct kl_node *gpu, int net, bool sending, FILE *to)
{
    explain_gdr(t, gpu, net, sending, to);
    if (sending) explain_pxn(t, gpu, net, to);
}

void kl_topo_explain_path(const struct kl_topo *t, int from, int far, FILE *to)
{
    const struct kl_path *p = kl_path(t, from, far);
    const struct kl_node *a = &t->node[from], *b = &t->node[far];
    char x[KL_NODE_TEXT], y[KL_NODE_TEXT];

    fprintf(to, "%s to %s: %s, %g GB/s, %d link%s\n", kl_topo_name(t, from, x), kl_topo_name(t, far, y),
            kl_path_type_name[p->type], (double)p->bw, p->hops, p->hops == 1 ? "" : "s");
    print_links(t, p, to);
    fprintf(to, "%s: %s\n", kl_path_type_name[p->type], meanings[p->type]);
    if (p->type != KL_PATH_DIS) fprintf(to, "Chosen: %s\n", rules[p->rule]);
    if (a->type == KL_NODE_GPU && b->type == KL_NODE_GPU) explain_p2p(t, a, b, to);
    if (a->type == KL_NODE_GPU && b->type == KL_NODE_NET) explain_nic(t, a, kl_topo_index(t, far), true, to);
    if (a->type == KL_NODE_NET && b->type == KL_NODE_GPU) explain_nic(t, b, kl_topo_index(t, from), false, to);
}
