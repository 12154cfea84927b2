/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/load.h"

#include "base/error.h"
#include "graph/stages.h"

#include <stdlib.h>
#include <string.h>

/* Where to add up what a walk takes. */
struct account {
    const struct kl_routes *routes;
    const struct kl_graph *graph;
    const struct kl_stage *stage;
    float *link, *port;
};

/* ---- walking a channel ---- */

static void charge_route(const struct account *a, const struct kl_route *p, enum kl_charge charge)
{
    const struct kl_routes *r = a->routes;

    for (uint32_t k = p->first; k < p->first + p->hops; k++) {
        a->link[r->link[k]] += r->levels.need[charge + r->share[k]];
        if (r->back[k].link >= 0) a->link[r->back[k].link] += r->levels.need[charge + r->back[k].share];
    }
}

static int gpu_at(const struct account *a, int channel, int i)
{
    return kl_topo_gpu_of_rank(a->routes->topo, a->graph->intra[(size_t)channel * (size_t)a->graph->ngpus + (size_t)i]);
}

/* Index of the entry (0) or exit (1) NET of a channel; -1 without. */
static int net_at(const struct account *a, int channel, int end)
{
    const struct kl_topo *t = a->routes->topo;
    int node = a->routes->nnets ? kl_topo_find(t, KL_NODE_NET, (uint64_t)a->graph->inter[2 * channel + end]) : -1;

    return node < 0 ? -1 : kl_topo_index(t, node);
}

static void charge_heads(const struct account *a, int head)
{
    int pattern = a->graph->pattern;

    for (int i = 0; i < 2 * a->routes->ngpus; i++) {
        struct kl_spoke s = kl_spoke_of(a->routes, pattern, kl_head_share(a->routes, pattern), head, i);

        charge_route(a, s.route, s.charge);
    }
}

static void charge_entry(const struct account *a, int channel, int gpu)
{
    const struct kl_routes *r = a->routes;
    int net = net_at(a, channel, 0);

    if (net < 0) return;
    charge_route(a, kl_net_gpu(r, net, gpu), KL_CHARGE_INTER);
    for (int i = r->same_port[net]; i >= 0; i = r->next_port[i]) a->port[i] += (float)kl_entry_bw(a->graph->bw_inter);
}

static void charge_channel(const struct account *a, int channel)
{
    int first = gpu_at(a, channel, 0), gpu = first, at = 0, exit = net_at(a, channel, 1);

    if (first < 0) return;
    charge_entry(a, channel, first);
    for (const struct kl_stage *s = a->stage; s->kind != KL_STAGE_DONE; s++) {
        if (s->kind == KL_STAGE_NET) {
            if (exit >= 0) charge_route(a, kl_gpu_net(a->routes, gpu, exit), kl_exit_charge(a->graph->pattern));
        } else if (s->kind == KL_STAGE_GPU) {
            int next = gpu_at(a, channel, ++at);

            if (next < 0) return;
            charge_route(a, kl_gpu_gpu(a->routes, gpu, next), KL_CHARGE_INTRA);
            gpu = next;
        } else {
            if (s->kind == KL_STAGE_HEADS) charge_heads(a, first);
            if (s->kind == KL_STAGE_FIRST) charge_route(a, kl_gpu_gpu(a->routes, gpu, first), KL_CHARGE_INTRA);
            return;
        }
    }
}

/* ---- one more ---- */

/* Less is what rounding leaves: the search keeps three decimals. */
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

/* Try another of each channel, and leave the one in `more` that lacks least. */
static void try_one_more(struct kl_load *l, const struct account *a)
{
    struct account more = *a;
    const struct kl_topo *t = a->routes->topo;
    float least = 0;
    int limit;

    more.link = l->more;
    more.port = l->port_more;
    for (int c = 0; c < a->graph->nchannels; c++) {
        clear_more(l);
        charge_channel(&more, c);
        float lacks = all_lack(l, t, &limit);

        if (l->like < 0 || lacks < least) l->like = c, least = lacks;
    }
    clear_more(l);
    if (l->like < 0) return;
    charge_channel(&more, l->like);
    all_lack(l, t, &l->limit);
    if (a->graph->nchannels >= a->graph->max_channels) l->limit = KL_LIMIT_CHANNELS;
}

/* ---- life ---- */

static ncclResult_t account_for(struct kl_load *l, struct kl_routes *routes, const struct kl_graph *g)
{
    struct kl_stage *stage = calloc((size_t)routes->ngpus + 3, sizeof *stage);
    struct account a = {routes, g, stage, l->used, l->port_used};

    if (!stage) return KL_NOMEM("the load of a graph");
    kl_stages_write(routes, g->pattern, stage);
    kl_stages_charge(routes, g->pattern, g->bw_intra, g->bw_inter);
    for (int c = 0; c < g->nchannels; c++) charge_channel(&a, c);
    try_one_more(l, &a);
    free(stage);
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
