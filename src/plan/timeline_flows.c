/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "graph/nic.h"
#include "plan/timeline_make.h"
#include "topo/paths.h"

#include <stdlib.h>

static const double per_us = 1e3; /* 1 GB/s in bytes per microsecond */

/* ---- links ---- */

static ncclResult_t number_links(struct kl_flows *f)
{
    const struct kl_plan *p = f->plan;
    int hosts = p->nranks / p->ranks_per_host;

    f->first_of_domain = malloc(((size_t)p->ndomains + 1) * sizeof *f->first_of_domain);
    if (!f->first_of_domain) return KL_NOMEM("a timeline");
    for (int d = 0; d < p->ndomains; d++) {
        f->first_of_domain[d] = f->links_per_host;
        f->links_per_host += p->domain[d].topo->nlinks;
    }
    f->nlinks = hosts * f->links_per_host;
    f->bw = malloc(((size_t)f->nlinks + 1) * sizeof *f->bw);
    f->demand = malloc(((size_t)f->nlinks + 1) * sizeof *f->demand);
    f->carried = calloc((size_t)f->nlinks + 1, KL_TIMELINE_BINS * sizeof *f->carried);
    if (!f->bw || !f->demand || !f->carried) return KL_NOMEM("a timeline");
    for (int h = 0, i = 0; h < hosts; h++)
        for (int d = 0; d < p->ndomains; d++)
            for (int k = 0; k < p->domain[d].topo->nlinks; k++)
                f->bw[i++] = (double)p->domain[d].topo->link[k].bw * per_us;
    return ncclSuccess;
}

static ncclResult_t add_path(struct kl_flows *f, int host, int domain, const struct kl_path *path)
{
    const struct kl_topo *t = f->plan->domain[domain].topo;

    if (f->nuses + path->hops > f->uses_room) {
        int room = 2 * (f->nuses + path->hops) + 64, *more = realloc(f->link, (size_t)room * sizeof *more);

        if (!more) return KL_NOMEM("a timeline");
        f->link = more;
        f->uses_room = room;
    }
    for (int i = 0; i < path->hops; i++)
        f->link[f->nuses++] = host * f->links_per_host + f->first_of_domain[domain] + kl_path_hops(t, path)[i];
    return ncclSuccess;
}

/* ---- edges ---- */

struct end {
    int host, domain, gpu, rank;
};

static struct end end_of(const struct kl_plan *p, int rank)
{
    int local = rank % p->ranks_per_host, d = p->domain_of[local];

    return (struct end){rank / p->ranks_per_host, d, kl_topo_gpu_of_rank(p->domain[d].topo, local), local};
}

/* Between the GPU and the NET of the channel; nothing where there is none. */
static ncclResult_t add_way_out(struct kl_flows *f, const struct end *e, int channel, bool out)
{
    const struct kl_plan_domain *d = &f->plan->domain[e->domain];
    struct kl_graph_nic nic;

    if (!d->graphs.has_nets || !d->graphs.graph[f->graph]) return ncclSuccess;
    KL_TRY(kl_graph_nic(d->topo, d->graphs.graph[f->graph], f->plan->connect->graph[f->graph].nchannels, channel,
                        e->rank, &nic));
    if (out)
        return add_path(f, e->host, e->domain, kl_path_between(d->topo, KL_NODE_GPU, e->gpu, KL_NODE_NET, nic.net));
    return add_path(f, e->host, e->domain, kl_path_between(d->topo, KL_NODE_NET, nic.net, KL_NODE_GPU, e->gpu));
}

static double rate_of(const struct kl_flows *f, bool inside)
{
    const struct kl_connect *c = f->plan->connect;
    const struct kl_graph_facts *g = &c->graph[f->graph];
    double bw = inside ? (double)g->bw_intra : (double)g->bw_inter;

    return bw * per_us * g->nchannels / c->coll_channels;
}

/* Returns its number in *flow. */
static ncclResult_t add_flow(struct kl_flows *f, int channel, int from, int to, double total, int *flow)
{
    struct end a = end_of(f->plan, from), b = end_of(f->plan, to);
    bool inside = a.host == b.host && a.domain == b.domain;
    struct kl_flow *new = &f->flow[f->nflows];

    *new = (struct kl_flow){.first_link = f->nuses, .total = total, .most = rate_of(f, inside)};
    if (inside) {
        KL_TRY(add_path(f, a.host, a.domain,
                        kl_path_between(f->plan->domain[a.domain].topo, KL_NODE_GPU, a.gpu, KL_NODE_GPU, b.gpu)));
    } else {
        KL_TRY(add_way_out(f, &a, channel, true));
        KL_TRY(add_way_out(f, &b, channel, false));
    }
    new->nlinks = f->nuses - new->first_link;
    *flow = f->nflows++;
    return ncclSuccess;
}

/* ---- rings: flow first + r is sent by rank r ---- */

static ncclResult_t add_ring(struct kl_flows *f, int channel)
{
    const struct kl_connect *c = f->plan->connect;
    int n = f->plan->nranks, first = f->nflows, flow;

    for (int r = 0; r < n; r++)
        KL_TRY(add_flow(f, channel, r, kl_connect_ring(c, channel, r).next, 2.0 * (n - 1) * f->chunk, &flow));
    for (int r = 0; r < n; r++) {
        f->flow[first + r].after[f->flow[first + r].nafter++] = first + kl_connect_ring(c, channel, r).prev;
        f->flow[first + r].own = f->chunk;
    }
    return ncclSuccess;
}

/* ---- trees: flows first + 2 r and the next lead from rank r to its parent and back ---- */

static void feed(struct kl_flows *f, int flow, int by)
{
    struct kl_flow *to = &f->flow[flow];

    if (to->nafter < KL_FLOW_AFTER) to->after[to->nafter++] = by;
}

static ncclResult_t add_tree(struct kl_flows *f, int channel)
{
    const struct kl_connect *c = f->plan->connect;
    int n = f->plan->nranks, flow, *up = malloc((size_t)n * sizeof *up);
    double total = KL_TIMELINE_CHUNKS * f->chunk;
    ncclResult_t rc = ncclSuccess;

    if (!up) return KL_NOMEM("a timeline");
    for (int r = 0; r < n && !rc; r++) {
        int parent = kl_connect_tree(c, channel, r).up;

        up[r] = -1;
        if (parent < 0) continue;
        rc = add_flow(f, channel, r, parent, total, &up[r]);
        if (!rc) rc = add_flow(f, channel, parent, r, total, &flow); /* up[r] + 1 */
    }
    for (int r = 0; r < n && !rc; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(c, channel, r);

        for (int i = 0; i < 3 && t.down[i] >= 0; i++) {
            if (up[r] >= 0) feed(f, up[r], up[t.down[i]]);
            if (up[r] >= 0) feed(f, up[t.down[i]] + 1, up[r] + 1);
            for (int k = 0; k < 3 && t.down[k] >= 0 && up[r] < 0; k++) feed(f, up[t.down[i]] + 1, up[t.down[k]]);
        }
    }
    free(up);
    return rc;
}

/* ---- */

ncclResult_t kl_flows_init(struct kl_flows *f, int64_t bytes)
{
    const struct kl_plan *p = f->plan;
    int channels = p->connect->coll_channels;
    double share = (double)bytes / channels;

    KL_TRY(number_links(f));
    f->chunk = share / (f->graph == KL_GRAPH_RING ? p->nranks : KL_TIMELINE_CHUNKS);
    f->flow = malloc(((size_t)channels * (size_t)p->nranks * 2 + 1) * sizeof *f->flow);
    if (!f->flow) return KL_NOMEM("a timeline");
    for (int ch = 0; ch < channels; ch++) KL_TRY(f->graph == KL_GRAPH_RING ? add_ring(f, ch) : add_tree(f, ch));
    return ncclSuccess;
}
