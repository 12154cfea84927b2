/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/segments.h"
#include "tools/kolo/picture/scene.h"

#include "base/error.h"
#include "graph/segments.h"
#include "graph/nic.h"

#include <stdlib.h>
#include <string.h>

/* ---- which ranks are drawn ---- */

/* Ranks of hosts that are drawn as copies; all of one machine's ranks, drawn or not. */
static bool is_here(const struct kl_scene *s, int rank)
{
    return rank >= 0 && kl_scene_copy(s, rank / s->view->plan->ranks_per_host) >= 0;
}

static int box_of_rank(const struct kl_scene *s, int rank)
{
    int per_host = s->view->plan->ranks_per_host, gpu = kl_topo_gpu_of_rank(s->topo, rank % per_host);

    if (!is_here(s, rank) || gpu < 0) return -1;
    return kl_scene_box(s, kl_scene_copy(s, rank / per_host), kl_topo_at(s->topo, KL_NODE_GPU, gpu));
}

/* ---- segments between ranks of rings and trees ---- */

struct end {
    int copy, domain, gpu; /* gpu: index in the domain's topology */
    int rank;              /* as the domain's topology numbers them */
};

static struct end end_of(const struct kl_scene *s, int rank)
{
    const struct kl_plan *p = s->view->plan;
    int local = rank % p->ranks_per_host, domain = p->domain_of[local];

    return (struct end){kl_scene_copy(s, rank / p->ranks_per_host), domain,
                        kl_topo_gpu_of_rank(p->domain[domain].topo, local), local};
}

/* The NET of an end's connections to other hosts; -1 without. */
static int net_of(const struct kl_scene *s, const struct end *e, int id, int channel)
{
    const struct kl_plan *p = s->view->plan;
    const struct kl_plan_domain *d = &p->domain[e->domain];
    int quiet = kl_error_quiet(1);
    struct kl_graph_nic nic;
    ncclResult_t rc =
        d->graphs.has_nets && d->graphs.graph[id]
            ? kl_graph_nic(d->topo, d->graphs.graph[id], p->connect->graph[id].nchannels, channel, e->rank, &nic)
            : ncclInternalError;

    kl_error_quiet(quiet);
    return rc ? -1 : nic.net;
}

static void draw_out(struct kl_drawn_segment_writer *w, const struct end *e, int id, int channel)
{
    int net = net_of(w->s, e, id, channel);

    if (net >= 0)
        kl_drawn_segment_path(
            w, e->copy, e->domain,
            kl_path_between(w->s->view->plan->domain[e->domain].topo, KL_NODE_GPU, e->gpu, KL_NODE_NET, net));
}

static void draw_in(struct kl_drawn_segment_writer *w, const struct end *e, int id, int channel)
{
    int net = net_of(w->s, e, id, channel);

    if (net >= 0)
        kl_drawn_segment_path(
            w, e->copy, e->domain,
            kl_path_between(w->s->view->plan->domain[e->domain].topo, KL_NODE_NET, net, KL_NODE_GPU, e->gpu));
}

/* From one rank to another: within a host and domain over its links, else through the network. */
static void draw_edge(struct kl_drawn_segment_writer *w, int id, int channel, int from, int to)
{
    const struct kl_scene *s = w->s;
    bool here = is_here(s, from), there = is_here(s, to);
    struct end a = end_of(s, from), b = end_of(s, to);

    if (from == to || (!here && !there)) return;
    kl_drawn_segment_begin(w);
    if (a.copy == b.copy && a.domain == b.domain && here) {
        kl_drawn_segment_path(
            w, a.copy, a.domain,
            kl_path_between(s->view->plan->domain[a.domain].topo, KL_NODE_GPU, a.gpu, KL_NODE_GPU, b.gpu));
    } else if (s->network) {
        if (here)
            draw_out(w, &a, id, channel);
        else
            kl_drawn_segment_from_undrawn(w);
        if (there)
            draw_in(w, &b, id, channel);
        else
            kl_drawn_segment_to_undrawn(w);
    }
    kl_drawn_segment_end(w);
}

/* ---- rings ---- */

/* Numbered from where the ring enters the first host. */
static void draw_ring(struct kl_drawn_segment_writer *w, int channel, int32_t *number)
{
    const struct kl_plan *p = w->s->view->plan;
    const struct kl_graph *g = p->domain[p->domain_of[0]].graphs.graph[KL_GRAPH_RING];
    int n = p->nranks, rank = g->intra[(size_t)(channel % g->nchannels) * (size_t)g->ngpus];

    for (int i = 1; i <= n; i++, rank = kl_connect_ring(p->connect, channel, rank).next) {
        int box = box_of_rank(w->s, rank);

        if (box >= 0) number[box] = i;
    }
    for (int r = 0; r < n; r++) {
        if (!is_here(w->s, r)) continue;
        struct kl_ring_links l = kl_connect_ring(p->connect, channel, r);

        draw_edge(w, KL_GRAPH_RING, channel, r, l.next);
        if (!is_here(w->s, l.prev)) draw_edge(w, KL_GRAPH_RING, channel, l.prev, r);
    }
}

/* ---- trees ---- */

static int depth_of(const struct kl_connect *c, int channel, int rank)
{
    int depth = 0;

    while ((rank = kl_connect_tree(c, channel, rank).up) >= 0) depth++;
    return depth;
}

/* From the root down, numbered by the distance from it. */
static void draw_tree(struct kl_drawn_segment_writer *w, int channel, int32_t *number)
{
    const struct kl_connect *c = w->s->view->plan->connect;

    for (int r = 0; r < w->s->view->plan->nranks; r++) {
        if (!is_here(w->s, r)) continue;
        struct kl_tree_neighbours t = kl_connect_tree(c, channel, r);
        int box = box_of_rank(w->s, r);

        if (box >= 0) number[box] = depth_of(c, channel, r);
        if (t.up >= 0) draw_edge(w, KL_GRAPH_TREE, channel, t.up, r);
        for (int i = 0; i < 3; i++)
            if (t.down[i] >= 0 && !is_here(w->s, t.down[i])) draw_edge(w, KL_GRAPH_TREE, channel, r, t.down[i]);
    }
}

/* ---- the others: every host by itself ---- */

static void number_gpus(const struct kl_scene *s, const struct kl_graph *g, int channel, int copy, int32_t *number)
{
    bool chain = g->id == KL_GRAPH_COLLNET_CHAIN;

    for (int i = 0; i < (chain ? g->ngpus : 1); i++) {
        int rank = g->intra[(size_t)channel * (size_t)g->ngpus + (size_t)i];
        int box = box_of_rank(s, kl_scene_host(s, copy) * s->view->plan->ranks_per_host + rank);

        if (box >= 0) number[box] = chain ? i + 1 : 0;
    }
}

/* The segments of a graph, by domain: routes take long to find in large machines, and all channels have the same. */
struct graph_segments {
    int n;
    struct domain_segments {
        struct kl_routes *routes; /* NULL: this domain has no such graph */
        struct kl_route_segments segments;
    } domain[];
};

static void close_segments(struct graph_segments *l)
{
    for (int d = 0; l && d < l->n; d++) {
        if (!l->domain[d].routes) continue;
        kl_route_segments_fini(&l->domain[d].segments);
        kl_routes_free(l->domain[d].routes);
    }
    free(l);
}

static ncclResult_t open_segments(const struct kl_plan *p, int id, struct graph_segments **out)
{
    struct graph_segments *l = calloc(1, sizeof *l + (size_t)p->ndomains * sizeof l->domain[0]);
    ncclResult_t rc = ncclSuccess;

    if (!l) return KL_NOMEM("a picture");
    l->n = p->ndomains;
    for (int d = 0; d < p->ndomains && !rc; d++) {
        const struct kl_graph *g = p->domain[d].graphs.graph[id];

        if (!g) continue;
        rc = kl_routes_create(p->domain[d].topo, &l->domain[d].routes);
        if (!rc) rc = kl_route_segments_init(&l->domain[d].segments, l->domain[d].routes, g);
    }
    if (rc)
        close_segments(l);
    else
        *out = l;
    return rc;
}

static void draw_domain(struct kl_drawn_segment_writer *w, struct kl_route_segments *segments, int channel, int domain,
                        int32_t *number)
{
    const struct kl_scene *s = w->s;

    if (channel >= segments->graph->nchannels) return;
    kl_route_segments_look(segments, channel);
    for (int copy = 0; copy < s->copies; copy++) {
        number_gpus(s, segments->graph, channel, copy, number);
        for (int i = 0; i < segments->n; i++) {
            if (!segments->segment[i].route->hops) continue;
            kl_drawn_segment_begin(w);
            kl_drawn_segment_path(w, copy, domain,
                                  kl_path(segments->routes->topo, segments->segment[i].from, segments->segment[i].to));
            kl_drawn_segment_end(w);
        }
    }
}

static void draw_graph(struct kl_drawn_segment_writer *w, struct graph_segments *segments, int channel, int32_t *number)
{
    for (int d = 0; d < segments->n; d++)
        if (segments->domain[d].routes) draw_domain(w, &segments->domain[d].segments, channel, d, number);
}

/* ---- all channels ---- */

/* `segments`: of graphs that every host has by itself. */
static ncclResult_t draw_way(const struct kl_scene *s, int id, struct graph_segments *segments, int channel,
                             struct kl_channel_path *way)
{
    size_t bytes;
    struct kl_drawn_segment_writer w = {.s = s, .to = open_memstream(&way->path, &bytes)};

    way->number = malloc(((size_t)s->nboxes + 1) * sizeof *way->number);
    way->uses = w.uses = calloc((size_t)s->topo->nlinks + 1, 1);
    for (int i = 0; way->number && i < s->nboxes; i++) way->number[i] = -1;
    if (!w.to || !way->number || !way->uses) {
        if (w.to) fclose(w.to);
        return KL_NOMEM("a picture");
    }
    if (id == KL_GRAPH_RING)
        draw_ring(&w, channel, way->number);
    else if (id == KL_GRAPH_TREE)
        draw_tree(&w, channel, way->number);
    else
        draw_graph(&w, segments, channel, way->number);
    return fclose(w.to) ? KL_NOMEM("a picture") : ncclSuccess;
}

/* Over all ranks, and not in each host by itself. */
static bool is_joined(int id)
{
    return id == KL_GRAPH_RING || id == KL_GRAPH_TREE;
}

/* Do two channels look alike? */
static bool is_same(const struct kl_scene *s, int id, int a, int b)
{
    const struct kl_plan *p = s->view->plan;

    if (id == KL_GRAPH_RING && !kl_connect_same_ring(p->connect, a, b)) return false;
    if (id == KL_GRAPH_TREE && !kl_connect_same_tree(p->connect, a, b)) return false;
    for (int d = 0; d < p->ndomains; d++) {
        const struct kl_graph *g = p->domain[d].graphs.graph[id];
        int n = !g ? 0 : is_joined(id) ? p->connect->graph[id].nchannels : g->nchannels;

        if (n && is_joined(id) && s->network && !kl_graph_same_nets(g, a % n, b % n)) return false;
        if (n && !is_joined(id) && (a >= n || b >= n || !kl_graph_same_channel(g, a, b))) return false;
    }
    return true;
}

/* Bits of this channel and all later ones that are the same; none if an earlier one is. */
static uint64_t channels_like(const struct kl_scene *s, int id, int channel, int n)
{
    uint64_t like = 0;

    for (int i = 0; i < channel; i++)
        if (is_same(s, id, i, channel)) return 0;
    for (int i = channel; i < n; i++) like |= (uint64_t)is_same(s, id, channel, i) << i;
    return like;
}

static ncclResult_t add_ways(const struct kl_scene *s, struct kl_picture_graph *g)
{
    bool joined = is_joined(g->id);
    int n = joined ? s->view->plan->connect->nchannels : g->graph->nchannels;
    struct graph_segments *segments = NULL;
    ncclResult_t rc = ncclSuccess;

    g->way = calloc((size_t)n + 1, sizeof *g->way);
    if (!g->way) return KL_NOMEM("a picture");
    if (!joined) KL_TRY(open_segments(s->view->plan, g->id, &segments));
    for (int c = 0; c < n && !rc; c++) {
        struct kl_channel_path *way = &g->way[g->nchannel_paths];

        way->channels = channels_like(s, g->id, c, n);
        if (!way->channels) continue;
        g->nchannel_paths++;
        rc = draw_way(s, g->id, segments, c, way);
    }
    close_segments(segments);
    return rc;
}

ncclResult_t kl_scene_channel_paths(struct kl_scene *s)
{
    for (int i = 0; i < s->ngraphs; i++) KL_TRY(add_ways(s, &s->graph[i]));
    return ncclSuccess;
}
