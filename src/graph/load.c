/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/load.h"

#include "base/error.h"
#include "graph/bound.h"

#include <stdlib.h>

/* A list of legs that grows. */
struct legs {
    const struct kl_routes *r;
    const struct kl_graph *g;
    struct kl_leg *leg;
    int n;
};

static void add(struct legs *l, enum kl_node_type from, int i, enum kl_node_type to, int j,
                const struct kl_route *route, float bw)
{
    if (!route->hops) return;
    l->leg[l->n++] = (struct kl_leg){kl_topo_at(l->r->topo, from, i), kl_topo_at(l->r->topo, to, j), bw, route};
}

static void add_gpu_gpu(struct legs *l, int from, int to, float bw)
{
    add(l, KL_NODE_GPU, from, KL_NODE_GPU, to, kl_gpu_gpu(l->r, from, to), bw);
}

/* The NET with an id, as an index among NETs; -1 where there is none, as in the graph of a machine without a solution. */
static int net_of(const struct kl_routes *r, int64_t id)
{
    int node = r->nnets ? kl_topo_find(r->topo, KL_NODE_NET, (uint64_t)id) : -1;

    return node < 0 ? -1 : kl_topo_index(r->topo, node);
}

static int gpu_at(const struct legs *l, int channel, int step)
{
    return kl_topo_gpu_of_rank(l->r->topo, l->g->intra[(size_t)channel * (size_t)l->g->ngpus + (size_t)step]);
}

static void add_entry(struct legs *l, int channel, int gpu)
{
    int net = net_of(l->r, l->g->inter[2 * channel]);

    if (net >= 0) add(l, KL_NODE_NET, net, KL_NODE_GPU, gpu, kl_net_gpu(l->r, net, gpu), l->g->bw_inter);
}

static void add_exit(struct legs *l, int channel, int gpu, float bw)
{
    int net = net_of(l->r, l->g->inter[2 * channel + 1]);

    if (net >= 0) add(l, KL_NODE_GPU, gpu, KL_NODE_NET, net, kl_gpu_net(l->r, gpu, net), bw);
}

/* What the GPU at a step of the order sends back to the network: a share of the channel's bandwidth. */
static float share_of_exit(const struct kl_graph *g, int step)
{
    switch (g->pattern) {
    case KL_PATTERN_BALANCED_TREE:
        return step < 2 ? 0.5f : 0;
    case KL_PATTERN_SPLIT_TREE:
        return step == 1;
    case KL_PATTERN_RING:
        return step == g->ngpus - 1;
    default:
        return step == 0;
    }
}

static void add_chain(struct legs *l, int channel)
{
    const struct kl_graph *g = l->g;
    int first = gpu_at(l, channel, 0), at = first;

    for (int i = 0; i < g->ngpus; i++) {
        int gpu = gpu_at(l, channel, i);

        if (i) add_gpu_gpu(l, at, gpu, g->bw_intra);
        if (share_of_exit(g, i) > 0) add_exit(l, channel, gpu, share_of_exit(g, i) * g->bw_inter);
        at = gpu;
    }
    if (g->pattern == KL_PATTERN_RING && !l->r->nnets) add_gpu_gpu(l, at, first, g->bw_intra);
}

/* Everybody to the head, or to the NVSwitch, and back. */
static void add_spokes(struct legs *l, int head)
{
    bool nvls = l->g->pattern == KL_PATTERN_NVLS;

    if (nvls && !l->r->nvs) return;
    for (int d = 0; d < l->r->ngpus; d++) {
        float bw = l->g->bw_intra * (nvls && d != head ? 1 : kl_head_share(l->g->pattern, l->r->ngpus));

        if (nvls) {
            add(l, KL_NODE_NVS, 0, KL_NODE_GPU, d, &l->r->nvs_gpu[d], bw);
            add(l, KL_NODE_GPU, d, KL_NODE_NVS, 0, &l->r->gpu_nvs[d], bw);
        } else {
            add_gpu_gpu(l, head, d, bw);
            add_gpu_gpu(l, d, head, bw);
        }
    }
}

int kl_graph_legs(const struct kl_routes *r, const struct kl_graph *g, int channel, struct kl_leg *leg)
{
    struct legs l = {r, g, leg, 0};
    int first = gpu_at(&l, channel, 0);

    add_entry(&l, channel, first);
    if (!kl_has_heads(g->pattern)) {
        add_chain(&l, channel);
        return l.n;
    }
    add_exit(&l, channel, first, g->bw_inter);
    add_spokes(&l, first);
    return l.n;
}

void kl_load_leg(const struct kl_routes *r, const struct kl_leg *leg, double *used)
{
    float share[KL_SHARES];

    kl_routes_shares(leg->bw, share);
    for (uint32_t k = leg->route->first; k < leg->route->first + leg->route->hops; k++) {
        used[r->link[k]] += (double)share[r->share[k]];
        if (r->back[k].link >= 0) used[r->back[k].link] += (double)share[r->back[k].share];
    }
}

ncclResult_t kl_graph_load(const struct kl_topo *topo, const struct kl_graph *g, double *used)
{
    ncclResult_t rc;
    struct kl_routes *routes = NULL;
    struct kl_leg *leg = malloc(kl_max_legs(g->ngpus) * sizeof *leg);

    if (!leg) return KL_NOMEM("the load of a graph");
    KL_TRY_OR(rc, out, kl_routes_create(topo, &routes));
    for (int c = 0; c < g->nchannels; c++) {
        int n = kl_graph_legs(routes, g, c, leg);

        for (int i = 0; i < n; i++) kl_load_leg(routes, &leg[i], used);
    }
out:
    kl_routes_free(routes);
    free(leg);
    return rc;
}
