/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/paths.h"

#include "base/error.h"
#include "topo/paths_make.h"

/* ---- bounds ---- */

static float widest_path(const struct kl_topo *t, int gpu)
{
    enum kl_node_type to = kl_topo_needs_net(t) ? KL_NODE_NET : KL_NODE_GPU;
    float bw = 0;

    for (int i = 0; i < t->count[to]; i++) {
        const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, to, i);
        if (p->hops && p->bw > bw) bw = p->bw;
    }
    return bw;
}

/* The bandwidth of a GPU: all its NVLinks, or its PCI link (the last one counts). */
static float own_links(const struct kl_topo *t, const struct kl_node *gpu)
{
    float nvlink = 0, pci = 0;

    for (int k = gpu->first_link; k < gpu->first_link + gpu->nlinks; k++) {
        if (t->link[k].type == KL_PATH_NVL) nvlink += t->link[k].bw;
        if (t->link[k].type == KL_PATH_PCI) pci = t->link[k].bw;
    }
    return nvlink > pci ? nvlink : pci;
}

void kl_path_set_bounds(struct kl_topo *t)
{
    t->max_bw = t->total_bw = 0;
    if (!kl_topo_needs_net(t) && t->count[KL_NODE_GPU] == 1) {
        t->max_bw = t->total_bw = KL_BW_LOCAL;
        return;
    }
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        float path = widest_path(t, g), links = own_links(t, &t->node[kl_topo_at(t, KL_NODE_GPU, g)]);

        if (path > t->max_bw) t->max_bw = path;
        if (links > t->total_bw) t->total_bw = links;
    }
    for (int i = 0; i < t->count[KL_NODE_DEV]; i++) {
        float links = own_links(t, &t->node[kl_topo_at(t, KL_NODE_DEV, i)]);

        if (links > t->total_bw) t->total_bw = links;
    }
}

/* ---- the whole ---- */

static ncclResult_t compute(struct kl_topo *t)
{
    KL_TRY(kl_path_find_shortest(t));
    KL_TRY(kl_path_apply_rules(t));
    kl_path_set_bounds(t);
    return ncclSuccess;
}

ncclResult_t kl_topo_paths(struct kl_topo *t)
{
    kl_topo_drop_paths(t);
    ncclResult_t rc = compute(t);
    if (rc) kl_topo_drop_paths(t);
    return rc;
}
