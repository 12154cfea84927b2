/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain_search.h"

#include "base/error.h"
#include "tools/kolo/topo_name.h"

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

static void several_links(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    const struct kl_link *l = &t->link[g->first];

    if (g->n == g->all)
        kl_text_add(text, "all %d links", g->n);
    else
        kl_text_add(text, "%d of %d links", g->n, g->all);
    kl_text_add(text, " %s → %s (%s)", kl_node_type_name[t->node[l->from].type], kl_node_type_name[t->node[l->to].type],
                kl_link_type_name[l->type]);
}

void kl_link_group_text(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    char net[KL_NODE_TEXT];

    if (!g->port && g->n == 1) {
        link_name(t, g->first, text);
        return;
    }
    if (!g->port) {
        several_links(t, g, text);
        return;
    }
    kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, g->first), net);
    if (g->n == 1)
        kl_text_add(text, "port of %s", net);
    else if (g->n == g->all)
        kl_text_add(text, "all %d ports of NICs", g->n);
    else
        kl_text_add(text, "%d of %d ports of NICs", g->n, g->all);
}

/* ---- grouping ---- */

static bool same_kind(const struct kl_topo *t, int a, int b)
{
    const struct kl_link *x = &t->link[a], *y = &t->link[b];

    return x->type == y->type && t->node[x->from].type == t->node[y->from].type &&
           t->node[x->to].type == t->node[y->to].type;
}

static bool same_numbers(const struct kl_link_group *a, const struct kl_link_group *b)
{
    return a->bw == b->bw && a->used == b->used && a->more == b->more && a->lacks == b->lacks;
}

/* Sums in single precision, to what the search itself keeps. */
static float rounded(float bw)
{
    return roundf(bw * 1000) / 1000;
}

static struct kl_link_group link_group(const struct kl_topo *t, const struct kl_load *l, int i)
{
    return (struct kl_link_group){.first = i,
                                  .n = 1,
                                  .bw = t->link[i].bw,
                                  .used = rounded(l->used[i]),
                                  .more = rounded(l->more[i]),
                                  .lacks = rounded(kl_load_lacks(l, t, i))};
}

static void add_link(const struct kl_topo *t, struct kl_told_graph *g, int link)
{
    struct kl_link_group one = link_group(t, g->load, link);

    if (one.used == 0 && one.more == 0) return;
    for (int i = 0; i < g->ngroups; i++)
        if (same_kind(t, g->group[i].first, link) && same_numbers(&g->group[i], &one)) {
            g->group[i].n++;
            return;
        }
    g->group[g->ngroups++] = one;
}

static void add_port(const struct kl_topo *t, struct kl_told_graph *g, int net)
{
    const struct kl_load *l = g->load;
    struct kl_link_group one = {.port = true,
                                .first = net,
                                .n = 1,
                                .bw = t->node[kl_topo_at(t, KL_NODE_NET, net)].net.bw,
                                .used = l->port_used[net],
                                .more = l->port_more[net],
                                .lacks = kl_load_port_lacks(l, t, net)};

    if (one.used == 0 && one.more == 0) return;
    for (int i = 0; i < g->ngroups; i++)
        if (g->group[i].port && same_numbers(&g->group[i], &one)) {
            g->group[i].n++;
            return;
        }
    g->group[g->ngroups++] = one;
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
