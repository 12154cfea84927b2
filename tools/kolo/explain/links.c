/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/search.h"

#include "base/error.h"
#include "plan/topo_name.h"

#include <math.h>
#include <stdlib.h>

/* ---- what a group is called ---- */

static void link_name(const struct kl_topo *t, int link, struct kl_text *text)
{
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    const struct kl_link *l = &t->link[link];

    kl_text_add(text, "%s → %s (%s)", kl_topo_name(t, l->from, from), kl_topo_name(t, l->to, to),
                kl_link_type_name[l->type]);
}

static void all_links(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    const struct kl_link *l = &t->link[g->first];

    if (g->n == 2)
        kl_text_add(text, "both");
    else
        kl_text_add(text, "all %d", g->n);
    kl_text_add(text, " links %s → %s (%s)", kl_node_type_name[t->node[l->from].type],
                kl_node_type_name[t->node[l->to].type], kl_link_type_name[l->type]);
}

static void port_name(const struct kl_topo *t, int net, struct kl_text *text)
{
    char name[KL_NODE_TEXT];

    kl_text_add(text, "entry through %s", kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, net), name));
}

void kl_link_group_text(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    if (g->n > 1 && g->n == g->all) {
        if (g->port)
            kl_text_add(text, "entry through all %d NICs", g->n);
        else
            all_links(t, g, text);
        return;
    }
    if (g->port)
        port_name(t, g->first, text);
    else
        link_name(t, g->first, text);
    if (g->n > 1) kl_text_add(text, " and %d like it", g->n - 1);
}

/* ---- grouping ---- */

static bool same_kind(const struct kl_topo *t, int a, int b)
{
    const struct kl_link *x = &t->link[a], *y = &t->link[b];

    return x->type == y->type && t->node[x->from].type == t->node[y->from].type &&
           t->node[x->to].type == t->node[y->to].type;
}

/* Sums in single precision, to what the search itself keeps. */
static float rounded(float bw)
{
    return roundf(bw * 1000) / 1000;
}

static bool belongs(const struct kl_topo *t, const struct kl_link_group *a, const struct kl_link_group *b)
{
    if (a->port != b->port || a->bw != b->bw || a->used != b->used) return false;
    return a->port || same_kind(t, a->first, b->first);
}

static void add_one(const struct kl_topo *t, struct kl_told_graph *g, const struct kl_link_group *one)
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

static void add_link(const struct kl_topo *t, struct kl_told_graph *g, int link)
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

static void add_port(const struct kl_topo *t, struct kl_told_graph *g, int net)
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

/* Links between the CPU and what has no speed of its own are no limit worth a row. */
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

ncclResult_t kl_tell_links(const struct kl_topo *t, struct kl_told_graph *g)
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
