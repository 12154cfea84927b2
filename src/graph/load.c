/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/load.h"

#include "base/error.h"
#include "graph/segments.h"

#include <stdlib.h>
#include <string.h>

/* The sums of the channels' reservations. */
struct account {
    struct kl_route_segments *segments;
    float *link, *port;
};

/* ---- one channel ---- */

static void charge_segment(const struct account *a, const struct kl_route_segment *segment)
{
    const struct kl_routes *r = a->segments->routes;
    const struct kl_route *p = segment->route;

    for (uint32_t k = p->first; k < p->first + p->hops; k++) {
        a->link[r->link[k]] += r->levels.need[segment->charge + r->share[k]];
        if (r->back[k].link >= 0) a->link[r->back[k].link] += r->levels.need[segment->charge + r->back[k].share];
    }
}

static void charge_port(const struct account *a, int net)
{
    const struct kl_routes *r = a->segments->routes;

    for (int i = r->same_port[net]; i >= 0; i = r->next_port[i])
        a->port[i] += (float)kl_entry_demand(a->segments->graph->bw_inter);
}

static void charge_channel(const struct account *a, int channel)
{
    const struct kl_topo *t = a->segments->routes->topo;
    const struct kl_route_segment *segment = a->segments->segment;

    kl_route_segments_look(a->segments, channel);
    if (a->segments->n && t->node[segment->from].type == KL_NODE_NET) charge_port(a, kl_topo_index(t, segment->from));
    for (int i = 0; i < a->segments->n; i++) charge_segment(a, &segment[i]);
}

/* ---- one more ---- */

/* Smaller differences are rounding errors: the search keeps three decimals. */
static float lack(float used, float more, float bw)
{
    float over = used + more - bw;

    return more > 0 && over > 0.001f ? over : 0;
}

float kl_load_lacks(const struct kl_load *l, const struct kl_topo *t, int link)
{
    return lack(l->used[link], l->more[link], t->link[link].bw);
}

float kl_load_port_lacks(const struct kl_load *l, const struct kl_topo *t, int net)
{
    return lack(l->port_used[net], l->port_more[net], t->node[kl_topo_at(t, KL_NODE_NET, net)].net.bw);
}

static float all_lack(const struct kl_load *l, const struct kl_topo *t, int *limit)
{
    float links = 0, ports = 0;

    for (int i = 0; i < l->nlinks; i++) links += kl_load_lacks(l, t, i);
    for (int i = 0; i < l->nnets; i++) ports += kl_load_port_lacks(l, t, i);
    *limit = links > 0 ? KL_LIMIT_LINKS : ports > 0 ? KL_LIMIT_PORTS : KL_LIMIT_NONE;
    return links + ports;
}

static void clear_more(struct kl_load *l)
{
    memset(l->more, 0, (size_t)l->nlinks * sizeof *l->more);
    memset(l->port_more, 0, (size_t)l->nnets * sizeof *l->port_more);
}

/* Try one more of each channel; `more` receives the one that lacks least. */
static void try_one_more(struct kl_load *l, const struct account *a)
{
    struct account more = *a;
    const struct kl_topo *t = a->segments->routes->topo;
    const struct kl_graph *g = a->segments->graph;
    float least = 0;
    int limit;

    more.link = l->more;
    more.port = l->port_more;
    for (int c = 0; c < g->nchannels; c++) {
        clear_more(l);
        charge_channel(&more, c);
        float lacks = all_lack(l, t, &limit);

        if (l->like < 0 || lacks < least) l->like = c, least = lacks;
    }
    clear_more(l);
    if (l->like < 0) return;
    charge_channel(&more, l->like);
    all_lack(l, t, &l->limit);
    if (g->nchannels >= g->max_channels) l->limit = KL_LIMIT_CHANNELS;
}

/* ---- life ---- */

static ncclResult_t account_for(struct kl_load *l, struct kl_routes *routes, const struct kl_graph *g)
{
    struct kl_route_segments segments;
    struct account a = {&segments, l->used, l->port_used};

    KL_TRY(kl_route_segments_init(&segments, routes, g));
    kl_stages_charge(routes, g->pattern, g->bw_intra, g->bw_inter);
    for (int c = 0; c < g->nchannels; c++) charge_channel(&a, c);
    try_one_more(l, &a);
    kl_route_segments_fini(&segments);
    return ncclSuccess;
}

ncclResult_t kl_load_create(const struct kl_topo *t, const struct kl_graph *g, struct kl_load **load)
{
    size_t nl = (size_t)t->nlinks, nn = (size_t)t->count[KL_NODE_NET];
    struct kl_load *l = calloc(1, sizeof *l + 2 * (nl + nn) * sizeof(float));
    struct kl_routes *routes;
    ncclResult_t rc;

    if (!l) return KL_NOMEM("the load of a graph");
    l->nlinks = (int)nl;
    l->nnets = (int)nn;
    l->like = -1;
    l->used = (float *)(l + 1);
    l->more = l->used + nl;
    l->port_used = l->more + nl;
    l->port_more = l->port_used + nn;
    KL_TRY_OR(rc, out, kl_routes_create(t, &routes));
    rc = account_for(l, routes, g);
    kl_routes_free(routes);
out:
    if (rc)
        kl_load_free(l);
    else
        *load = l;
    return rc;
}

void kl_load_free(struct kl_load *l)
{
    free(l);
}

const char *kl_limit_name(int limit)
{
    static const char *const names[] = {"none", "channels", "links", "ports"};

    return limit >= 0 && limit < (int)(sizeof names / sizeof names[0]) ? names[limit] : "unknown";
}
