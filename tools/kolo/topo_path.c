/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/topo_text.h"

#include "base/text.h"
#include "plan/bottleneck.h"
#include "plan/topo_name.h"
#include "topo/paths.h"

static void print_links(const struct kl_topo *t, const struct kl_path *p, FILE *to)
{
    char from[KL_NODE_TEXT], far[KL_NODE_TEXT];

    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        fprintf(to, "  %-18s %s %8g GB/s  %s%s\n", kl_topo_name(t, l->from, from), kl_link_type_name[l->type],
                (double)l->bw, kl_topo_name(t, l->to, far), kl_path_is_bottleneck(t, p, k) ? "   <- bottleneck" : "");
    }
}

/* ---- GPU to GPU ---- */

static void explain_p2p(const struct kl_topo *t, const struct kl_node *a, const struct kl_node *b, FILE *to)
{
    struct kl_p2p answer;
    enum kl_shm_why shm = kl_topo_shm(t, a->gpu.rank, b->gpu.rank);
    char why[KL_WHY_TEXT];

    if (a == b || kl_topo_p2p(t, a->gpu.rank, b->gpu.rank, &answer)) return;
    fprintf(to, "P2P: %s, %s%s\n", answer.p2p ? "yes" : "no", kl_p2p_why_text(&answer, why),
            answer.p2p && answer.read ? "; reading is preferred" : "");
    if (answer.p2p && answer.via >= 0) fprintf(to, "     through the GPU of rank %d\n", answer.via);
    fprintf(to, "Shared memory: %s, %s\n", shm == KL_SHM_ALLOWED ? "yes" : "no", kl_shm_why_text(shm));
}

/* ---- GPU to NIC ---- */

static void explain_gdr(const struct kl_topo *t, const struct kl_node *gpu, int net, bool read, FILE *to)
{
    struct kl_gdr gdr;
    char why[KL_WHY_TEXT];

    if (kl_topo_gdr(t, gpu->gpu.rank, net, read, &gdr)) return;
    fprintf(to, "GPUDirect for %s: %s, %s\n", read ? "sending" : "receiving", gdr.mode ? "yes" : "no",
            kl_gdr_why_text(&gdr, why));
}

static void explain_pxn(const struct kl_topo *t, const struct kl_node *gpu, int net, FILE *to)
{
    struct kl_pxn pxn = kl_topo_pxn(t, kl_topo_gpu_of_rank(t, gpu->gpu.rank), net);
    int relay = pxn.relay < 0 ? -1 : t->node[kl_topo_at(t, KL_NODE_GPU, pxn.relay)].gpu.rank;
    char why[KL_WHY_TEXT];

    if (pxn.why == KL_PXN_USED)
        fprintf(to, "PXN: yes, sending goes through GPU/%d\n", relay);
    else
        fprintf(to, "PXN: no, %s\n", kl_pxn_why_text(pxn.why, relay, why));
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
            kl_path_type_name[p->type], (double)p->bw, p->hops, kl_plural(p->hops));
    print_links(t, p, to);
    fprintf(to, "%s: %s\n", kl_path_type_name[p->type], kl_path_type_text(p->type));
    if (p->type != KL_PATH_DIS) fprintf(to, "Chosen: %s\n", kl_path_rule_text(p->rule));
    if (a->type == KL_NODE_GPU && b->type == KL_NODE_GPU) explain_p2p(t, a, b, to);
    if (a->type == KL_NODE_GPU && b->type == KL_NODE_NET) explain_nic(t, a, kl_topo_index(t, far), true, to);
    if (a->type == KL_NODE_NET && b->type == KL_NODE_GPU) explain_nic(t, b, kl_topo_index(t, from), false, to);
}
