/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/segments.h"

#include "base/error.h"

#include <stdlib.h>

ncclResult_t kl_route_segments_init(struct kl_route_segments *l, const struct kl_routes *routes,
                                    const struct kl_graph *graph)
{
    size_t ngpus = (size_t)routes->ngpus;

    *l = (struct kl_route_segments){.routes = routes, .graph = graph};
    l->stage = calloc(ngpus + 3, sizeof *l->stage);
    l->segment = calloc(2 * ngpus + 3, sizeof *l->segment);
    if (!l->stage || !l->segment) {
        kl_route_segments_fini(l);
        return KL_NOMEM("the ways of a graph");
    }
    kl_stages_write(routes, graph->pattern, l->stage);
    return ncclSuccess;
}

void kl_route_segments_fini(struct kl_route_segments *l)
{
    free(l->stage);
    free(l->segment);
    *l = (struct kl_route_segments){0};
}

/* ---- the GPUs and NETs of a channel ---- */

static int gpu_at(const struct kl_route_segments *l, int channel, int i)
{
    return kl_topo_gpu_of_rank(l->routes->topo, l->graph->intra[(size_t)channel * (size_t)l->graph->ngpus + (size_t)i]);
}

/*
 * Index of the entry (0) or exit (1) NET of a channel, which leads to or from `gpu`; -1 without. Odd files give several
 * NETs one id, and the graph does not say which it is: the first that can carry the channel.
 */
static int net_at(const struct kl_route_segments *l, int channel, int end, int gpu)
{
    const struct kl_routes *r = l->routes;
    uint64_t id = (uint64_t)l->graph->inter[2 * channel + end];
    int first = -1;

    for (int n = 0; n < r->nnets; n++) {
        const struct kl_route *route = end ? kl_gpu_net(r, gpu, n) : kl_net_gpu(r, n, gpu);

        if (r->topo->node[kl_topo_at(r->topo, KL_NODE_NET, n)].id != id) continue;
        if (route->bw >= l->graph->bw_inter && route->type <= l->graph->type_inter) return n;
        if (first < 0) first = n;
    }
    return first;
}

/* ---- segments ---- */

static void add(struct kl_route_segments *l, enum kl_node_type from, int i, enum kl_node_type to, int j,
                const struct kl_route *route, enum kl_charge charge)
{
    const struct kl_topo *t = l->routes->topo;

    l->segment[l->n++] = (struct kl_route_segment){kl_topo_at(t, from, i), kl_topo_at(t, to, j), route, charge};
}

static void add_gpu_gpu(struct kl_route_segments *l, int from, int to)
{
    add(l, KL_NODE_GPU, from, KL_NODE_GPU, to, kl_gpu_gpu(l->routes, from, to), KL_CHARGE_INTRA);
}

/* Every GPU to the head, or to the NVSwitch, and back. */
static void add_head_routes(struct kl_route_segments *l, int head)
{
    const struct kl_routes *r = l->routes;
    int pattern = l->graph->pattern;
    bool nvls = pattern == KL_PATTERN_NVLS;
    enum kl_node_type hub = nvls ? KL_NODE_NVS : KL_NODE_GPU;

    if (nvls && !r->nvs) return;
    for (int i = 0; i < 2 * r->ngpus; i++) {
        struct kl_head_route s = kl_head_route_of(r, pattern, kl_head_share(r, pattern), head, i);
        int d = i % r->ngpus, at = nvls ? 0 : head;

        if (i < r->ngpus)
            add(l, hub, at, KL_NODE_GPU, d, s.route, s.charge);
        else
            add(l, KL_NODE_GPU, d, hub, at, s.route, s.charge);
    }
}

/* From GPU to GPU until the channel is complete. */
static void add_stages(struct kl_route_segments *l, int channel, int first)
{
    int gpu = first, at = 0;

    for (const struct kl_stage *s = l->stage; s->kind != KL_STAGE_DONE; s++) {
        if (s->kind == KL_STAGE_NET) {
            int exit = net_at(l, channel, 1, gpu);

            if (exit >= 0)
                add(l, KL_NODE_GPU, gpu, KL_NODE_NET, exit, kl_gpu_net(l->routes, gpu, exit),
                    kl_exit_charge(l->graph->pattern));
        } else if (s->kind == KL_STAGE_GPU) {
            int next = gpu_at(l, channel, ++at);

            if (next < 0) return;
            add_gpu_gpu(l, gpu, next);
            gpu = next;
        } else {
            if (s->kind == KL_STAGE_HEADS) add_head_routes(l, first);
            if (s->kind == KL_STAGE_FIRST) add_gpu_gpu(l, gpu, first);
            return;
        }
    }
}

void kl_route_segments_look(struct kl_route_segments *l, int channel)
{
    int first = gpu_at(l, channel, 0), net;

    l->n = 0;
    if (first < 0) return;
    net = net_at(l, channel, 0, first);
    if (net >= 0) add(l, KL_NODE_NET, net, KL_NODE_GPU, first, kl_net_gpu(l->routes, net, first), KL_CHARGE_INTER);
    add_stages(l, channel, first);
}
