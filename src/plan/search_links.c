/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search_make.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

static bool same_kind(const struct kl_topo *t, int a, int b)
{
    const struct kl_link *x = &t->link[a], *y = &t->link[b];

    return x->type == y->type && t->node[x->from].type == t->node[y->from].type &&
           t->node[x->to].type == t->node[y->to].type;
}

/* Sums in single precision, as the search itself keeps. */
static float rounded(float bw)
{
    return roundf(bw * 1000) / 1000;
}

static bool belongs(const struct kl_topo *t, const struct kl_link_group *a, const struct kl_link_group *b)
{
    if (a->port != b->port || a->bw != b->bw || a->used != b->used) return false;
    return a->port || same_kind(t, a->first, b->first);
}

static void add_one(const struct kl_topo *t, struct kl_graph_report *g, const struct kl_link_group *one)
{
    if (one->used == 0 && one->more == 0) return;
    for (int i = 0; i < g->ngroups; i++) {
        struct kl_link_group *at = &g->group[i];

        if (!belongs(t, at, one)) continue;
        at->n++;
        at->nlacks += one->nlacks;
        if (one->more > at->more) at->more = one->more;
        if (one->lacks > at->lacks) at->lacks = one->lacks;
        return;
    }
    g->group[g->ngroups++] = *one;
}

static void add_link(const struct kl_topo *t, struct kl_graph_report *g, int link)
{
    const struct kl_load *l = g->load;
    float lacks = kl_load_lacks(l, t, link);
    struct kl_link_group one = {.first = link,
                                .n = 1,
                                .bw = t->link[link].bw,
                                .used = rounded(l->used[link]),
                                .nlacks = lacks > 0,
                                .more = rounded(l->more[link]),
                                .lacks = rounded(lacks)};

    add_one(t, g, &one);
}

static void add_port(const struct kl_topo *t, struct kl_graph_report *g, int net)
{
    const struct kl_load *l = g->load;
    float lacks = kl_load_port_lacks(l, t, net);
    struct kl_link_group one = {.port = true,
                                .first = net,
                                .n = 1,
                                .bw = t->node[kl_topo_at(t, KL_NODE_NET, net)].net.bw,
                                .used = rounded(l->port_used[net]),
                                .nlacks = lacks > 0,
                                .more = rounded(l->port_more[net]),
                                .lacks = rounded(lacks)};

    add_one(t, g, &one);
}

/* Links between the CPU and devices without a speed of their own are no limit worth a row. */
static bool is_limit(const struct kl_link *l)
{
    return l->bw < KL_BW_LOCAL;
}

static void count_all(const struct kl_topo *t, struct kl_link_group *g)
{
    if (g->port) {
        g->all = t->count[KL_NODE_NET];
        return;
    }
    for (int l = 0; l < t->nlinks; l++) g->all += same_kind(t, g->first, l);
}

static int fullest_first(const void *x, const void *y)
{
    const struct kl_link_group *a = x, *b = y;
    float fa = a->bw > 0 ? a->used / a->bw : 0, fb = b->bw > 0 ? b->used / b->bw : 0;

    if ((a->lacks > 0) != (b->lacks > 0)) return a->lacks > 0 ? -1 : 1;
    if (fa != fb) return fa > fb ? -1 : 1;
    if (a->port != b->port) return a->port ? 1 : -1;
    return a->first - b->first;
}

ncclResult_t kl_search_group_links(const struct kl_topo *t, struct kl_graph_report *g)
{
    g->group = malloc(((size_t)t->nlinks + (size_t)t->count[KL_NODE_NET] + 1) * sizeof *g->group);
    if (!g->group) return KL_NOMEM("the loads of links");
    for (int l = 0; l < t->nlinks; l++)
        if (is_limit(&t->link[l])) add_link(t, g, l);
    for (int n = 0; n < t->count[KL_NODE_NET]; n++) add_port(t, g, n);
    for (int i = 0; i < g->ngroups; i++) count_all(t, &g->group[i]);
    qsort(g->group, (size_t)g->ngroups, sizeof *g->group, fullest_first);
    return ncclSuccess;
}
