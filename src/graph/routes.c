/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/routes.h"

#include "base/error.h"
#include "topo/paths.h"

#include <stdlib.h>

/* The share of a hop on the opposite direction, for traffic from a node of type `from`; KL_SHARES: none. */
static uint8_t back_share(const struct kl_topo *t, const struct kl_link *l, enum kl_node_type from, uint8_t share)
{
    const struct kl_node *far = &t->node[l->to];

    /* GPUs before sm 80 acknowledge writes of others. */
    if (far->type == KL_NODE_GPU && far->gpu.sm < 80 && from != KL_NODE_GPU)
        return share == KL_SHARE_COSTLY ? KL_SHARE_COSTLY_EIGHTH : KL_SHARE_EIGHTH;
    /* NVLink of POWER CPUs is counted for both directions together. */
    if (far->type == KL_NODE_CPU && far->cpu.arch == KL_ARCH_POWER && l->type == KL_PATH_NVL) return share;
    return KL_SHARES;
}

static bool through_intel(const struct kl_topo *t, const struct kl_path *p, enum kl_node_type from)
{
    if (from != KL_NODE_GPU || p->type != KL_PATH_PHB) return false;
    for (int k = 0; k < p->hops; k++) {
        const struct kl_node *n = &t->node[t->link[kl_path_hops(t, p)[k]].to];

        if (n->type == KL_NODE_CPU && n->cpu.arch == KL_ARCH_X86 && n->cpu.vendor == KL_VENDOR_INTEL) return true;
    }
    return false;
}

static struct kl_back back_of(const struct kl_topo *t, int link, enum kl_node_type from, uint8_t share)
{
    uint8_t back = back_share(t, &t->link[link], from, share);

    if (back == KL_SHARES) return (struct kl_back){.link = -1};
    return (struct kl_back){.link = t->link[link].reverse, .share = back};
}

/* Fill the hops of a route. It is plain unless a hop is special, or the path uses a link twice. */
static void fill_hops(struct kl_routes *r, const struct kl_path *p, enum kl_node_type from, struct kl_route *route)
{
    const int32_t *link = kl_path_hops(r->topo, p);
    bool costly = through_intel(r->topo, p, from);

    route->plain = true;
    for (int k = 0; k < p->hops; k++) {
        uint32_t at = route->first + (uint32_t)k;

        r->link[at] = link[k];
        r->share[at] = costly && r->topo->link[link[k]].type == KL_PATH_PCI ? KL_SHARE_COSTLY : KL_SHARE_ALL;
        r->back[at] = back_of(r->topo, link[k], from, r->share[at]);
        r->shares |= 1u << r->share[at] | 1u << r->back[at].share;
        route->plain &= r->back[at].link < 0;
        for (int i = 0; i < k; i++) route->plain &= link[i] != link[k];
    }
}

/* All paths between two types, `n` from nodes and `m` to nodes; returns the types met as bits. */
static unsigned fill_routes(struct kl_routes *r, enum kl_node_type from, int n, enum kl_node_type to, int m,
                            struct kl_route *route, uint32_t *used)
{
    const struct kl_topo *t = r->topo;
    unsigned types = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++, route++) {
            const struct kl_path *p = kl_path_between(t, from, i, to, j);
            uint8_t back = kl_path_between(t, to, j, from, i)->type;

            route->first = *used;
            route->hops = p->hops;
            route->length = (uint16_t)kl_path_length(t, p);
            route->type = p->type;
            route->bw = p->bw;
            route->both = back > p->type ? back : p->type;
            fill_hops(r, p, from, route);
            *used += p->hops;
            types |= 1u << p->type;
        }
    return types;
}

static uint32_t count_hops(const struct kl_topo *t, enum kl_node_type from, int n, enum kl_node_type to, int m)
{
    uint32_t hops = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) hops += kl_path_between(t, from, i, to, j)->hops;
    return hops;
}

static ncclResult_t alloc_routes(struct kl_routes *r)
{
    const struct kl_topo *t = r->topo;
    size_t ng = (size_t)r->ngpus, nn = (size_t)r->nnets;
    uint32_t hops = count_hops(t, KL_NODE_GPU, r->ngpus, KL_NODE_GPU, r->ngpus) +
                    count_hops(t, KL_NODE_GPU, r->ngpus, KL_NODE_NET, r->nnets) +
                    count_hops(t, KL_NODE_NET, r->nnets, KL_NODE_GPU, r->ngpus) +
                    count_hops(t, KL_NODE_GPU, r->ngpus, KL_NODE_NVS, r->nvs) +
                    count_hops(t, KL_NODE_NVS, r->nvs, KL_NODE_GPU, r->ngpus);

    r->gpu_gpu = malloc((ng * ng + 2 * ng * nn + 2 * ng) * sizeof *r->gpu_gpu);
    r->back = malloc(((size_t)hops + 1) * (sizeof *r->back + sizeof *r->share));
    r->link = malloc(((size_t)hops + 1) * sizeof *r->link);
    r->net_bw = malloc((nn + 1) * sizeof *r->net_bw);
    r->level = malloc(((size_t)t->nlinks + 1) * sizeof *r->level);
    r->pci_up = malloc((5 * ng + 4 * nn + ng * nn) * sizeof *r->pci_up);
    r->nearest = malloc((nn + 1) * sizeof *r->nearest);
    if (!r->gpu_gpu || !r->back || !r->link || !r->net_bw || !r->level || !r->pci_up || !r->nearest)
        return KL_NOMEM("a graph search");
    r->share = (uint8_t *)(r->back + hops + 1);
    r->gpu_net = r->gpu_gpu + ng * ng;
    r->net_gpu = r->gpu_net + ng * nn;
    r->gpu_nvs = r->net_gpu + ng * nn;
    r->nvs_gpu = r->gpu_nvs + ng;
    r->pci_down = r->pci_up + ng;
    r->same_rank = r->pci_down + ng;
    r->same_net = r->same_rank + ng;
    r->same_port = r->same_net + nn;
    r->next_port = r->same_port + nn;
    r->near_gpu = r->next_port + nn;
    r->way_out = r->near_gpu + ng * nn;
    r->way_in = r->way_out + ng;
    r->local_gpu = r->way_in + ng;
    return ncclSuccess;
}

static void fill_gpu(struct kl_routes *r, int g)
{
    const struct kl_topo *t = r->topo;
    const struct kl_node *n = kl_routes_gpu(r, g);

    r->pci_up[g] = r->pci_down[g] = -1;
    for (int k = n->first_link + n->nlinks - 1; k >= n->first_link; k--)
        if (t->link[k].type == KL_PATH_PCI) r->pci_up[g] = k, r->pci_down[g] = t->link[k].reverse;
    for (int i = r->same_rank[g] = 0; i < g; r->same_rank[g] = ++i)
        if (kl_routes_gpu(r, i)->gpu.rank == n->gpu.rank) break;
    if (n->gpu.sm < r->min_sm) r->min_sm = n->gpu.sm;
}

static void fill_net(struct kl_routes *r, int k)
{
    const struct kl_node *n = kl_routes_net(r, k);
    int i;

    for (i = 0; i < k && kl_routes_net(r, i)->id != n->id;) i++;
    r->same_net[k] = i;
    for (i = 0; i < k && !kl_net_same_port(kl_routes_net(r, i), n);) i++;
    r->same_port[k] = i;
    r->next_port[k] = -1;
    if (i < k) {
        while (r->next_port[i] >= 0) i = r->next_port[i];
        r->next_port[i] = k;
    }
    r->net_bw[k] = n->net.bw;
    r->local_gpu[k] = kl_topo_local_gpu(r->topo, k);
}

/* The link that all routes out of a GPU begin with, or all into it end with. */
static int only_way(const struct kl_routes *r, int gpu, bool out)
{
    int link = -1;

    for (int g = 0; g < r->ngpus; g++) {
        const struct kl_route *p = out ? kl_gpu_gpu(r, gpu, g) : kl_gpu_gpu(r, g, gpu);
        int end = p->hops ? r->link[out ? p->first : p->first + p->hops - 1u] : -1;

        if (end < 0) continue;
        if (link >= 0 && end != link) return -1;
        link = end;
    }
    return link;
}

/* Without regard to hops. `near_gpu` has room for all GPUs of each NET. */
static void fill_nearest_by_type(struct kl_routes *r, int net, int32_t *used)
{
    struct kl_nearest *near = &r->nearest[net];

    *near = (struct kl_nearest){.first = *used, .type = KL_PATH_DIS};
    near->n = kl_topo_nearest(r->topo, KL_NODE_NET, net, KL_NODE_GPU, r->near_gpu + *used);
    if (!near->n) return;
    near->bw = kl_net_gpu(r, net, r->near_gpu[*used])->bw;
    near->type = kl_net_gpu(r, net, r->near_gpu[*used])->type;
    *used += near->n;
}

static void fill_nearest(struct kl_routes *r, int net, int32_t *used)
{
    const struct kl_route *q = kl_net_gpu(r, net, 0);
    int min_hops = 0x0fffffff;
    struct kl_nearest *near = &r->nearest[net];

    near->bw = 0;
    near->first = *used;
    for (int g = 0; g < r->ngpus; g++) {
        if (q[g].bw > near->bw)
            near->bw = q[g].bw, min_hops = q[g].hops;
        else if (q[g].bw == near->bw && q[g].hops > 0 && q[g].hops < min_hops)
            min_hops = q[g].hops;
    }
    for (int g = 0; g < r->ngpus; g++)
        if (q[g].bw == near->bw && q[g].hops == min_hops) r->near_gpu[(*used)++] = g;
    near->n = *used - near->first;
}

static void fill_all_routes(struct kl_routes *r)
{
    uint32_t used = 0;

    r->intra_types = fill_routes(r, KL_NODE_GPU, r->ngpus, KL_NODE_GPU, r->ngpus, r->gpu_gpu, &used) |
                     fill_routes(r, KL_NODE_GPU, r->ngpus, KL_NODE_NVS, r->nvs, r->gpu_nvs, &used) |
                     fill_routes(r, KL_NODE_NVS, r->nvs, KL_NODE_GPU, r->ngpus, r->nvs_gpu, &used);
    r->inter_types = fill_routes(r, KL_NODE_GPU, r->ngpus, KL_NODE_NET, r->nnets, r->gpu_net, &used) |
                     fill_routes(r, KL_NODE_NET, r->nnets, KL_NODE_GPU, r->ngpus, r->net_gpu, &used);
}

ncclResult_t kl_routes_create(const struct kl_topo *topo, struct kl_routes **routes)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_routes *r = calloc(1, sizeof *r);
    const struct kl_node *cpu = kl_topo_first_cpu(topo);
    int32_t near = 0;

    if (!r) return KL_NOMEM("a graph search");
    r->topo = topo;
    r->ngpus = topo->count[KL_NODE_GPU];
    r->nccl = topo->options.nccl;
    r->all_nets = topo->count[KL_NODE_NET];
    r->nnets = kl_topo_needs_net(topo) ? r->all_nets : 0;
    r->nvs = topo->count[KL_NODE_NVS] > 0;
    r->min_sm = INT32_MAX;
    r->amd = cpu && cpu->cpu.arch == KL_ARCH_X86 && cpu->cpu.vendor == KL_VENDOR_AMD;
    KL_TRY_OR(rc, out, alloc_routes(r));
    for (int l = 0; l < topo->nlinks; l++) r->level[l] = kl_level_of(&r->levels, topo->link[l].bw);
    for (int g = 0; g < r->ngpus; g++) fill_gpu(r, g);
    for (int k = 0; k < r->nnets; k++) fill_net(r, k);
    fill_all_routes(r);
    for (int g = 0; g < r->ngpus; g++) r->way_out[g] = only_way(r, g, true), r->way_in[g] = only_way(r, g, false);
    for (int k = 0; k < r->nnets; k++)
        (kl_nccl_has(r->nccl, KL_CHANGE_START_NEAREST) ? fill_nearest_by_type : fill_nearest)(r, k, &near);
    if (r->levels.nomem) {
        rc = KL_NOMEM("a graph search");
        goto out;
    }
    *routes = r;
    r = NULL;
out:
    kl_routes_free(r);
    return rc;
}

/* ---- rails ---- */

static bool defined(int a, int b)
{
    return a >= 0 && b >= 0;
}

bool kl_routes_same_plane(const struct kl_routes *r, int entry, int exit)
{
    int a = kl_routes_net(r, entry)->net.plane, b = kl_routes_net(r, exit)->net.plane;

    return !kl_nccl_has(r->nccl, KL_CHANGE_RAILS) || !defined(a, b) || a == b;
}

bool kl_routes_same_rail(const struct kl_routes *r, int entry, int exit)
{
    const struct kl_node *a = kl_routes_net(r, entry), *b = kl_routes_net(r, exit);
    bool per_host = r->topo->options.rail_per_host && kl_nccl_has(r->nccl, KL_CHANGE_RAIL_PER_HOST);

    if (kl_nccl_has(r->nccl, KL_CHANGE_RAILS) && defined(a->net.rail, b->net.rail)) return a->net.rail == b->net.rail;
    if (per_host && kl_id_host(a->id) != kl_id_host(b->id))
        return a->net.pci == b->net.pci && a->net.port == b->net.port;
    return r->same_port[entry] == r->same_port[exit];
}

void kl_routes_charge(struct kl_routes *r, enum kl_charge charge, float bw)
{
    float costly = bw * 6 / 5;
    const float share[KL_SHARES] = {bw, costly, bw / 8, costly / 8};

    for (int s = 0; s < KL_SHARES; s++) {
        r->levels.need[charge + s] = share[s];
        r->levels.need[charge + KL_GIVE + s] = -share[s];
    }
}

void kl_routes_free(struct kl_routes *r)
{
    if (!r) return;
    free(r->gpu_gpu);
    free(r->back);
    free(r->link);
    free(r->net_bw);
    free(r->level);
    kl_levels_fini(&r->levels);
    free(r->pci_up);
    free(r->nearest);
    free(r);
}
