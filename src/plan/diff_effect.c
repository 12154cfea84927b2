/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/param_names.h"
#include "topo/paths.h"

#include <string.h>

/* ---- rows ---- */

static const struct kl_diff_row *first_row(const struct kl_diff *d, enum kl_diff_what what)
{
    for (int i = 0; i < d->rows.nrows; i++)
        if (d->rows.row[i].what == what) return &d->rows.row[i];
    return NULL;
}

static struct kl_diff_effect *add(struct kl_diff *d, enum kl_diff_effect_kind kind, const struct kl_diff_row *row)
{
    struct kl_diff_effect *e = &d->effect[d->neffects++];

    *e = (struct kl_diff_effect){.kind = kind, .row = row};
    return e;
}

/* ---- rules ---- */

/* Add the first of these answers that differs. NULL: none does. */
static struct kl_diff_effect *add_answer(struct kl_diff *d, enum kl_diff_what what)
{
    const struct kl_diff_row *r = first_row(d, what);
    struct kl_diff_effect *e;

    if (!r) return NULL;
    e = add(d, KL_DIFF_ANSWER, r);
    for (int i = 0; i < d->rows.nrows; i++) e->nalike += kl_rows_alike(r, &d->rows.row[i]);
    return e;
}

/* The change of P2P's reach for the pair, if it changed. */
static void find_reach(const struct kl_diff *d, struct kl_diff_effect *e)
{
    const struct kl_diff_row *r = e->row;
    const int *to_b = d->a.to_b;
    struct kl_p2p x, y;
    int gpu;

    if (kl_topo_p2p(kl_diff_topo(&d->a, r->from, &gpu), r->from, r->to, &x) ||
        kl_topo_p2p(kl_diff_topo(&d->b, to_b[r->from], &gpu), to_b[r->from], to_b[r->to], &y))
        return;
    if (x.level == y.level && x.p2p == y.p2p) return;
    e->reach = y.why == KL_P2P_DISABLED ? KL_REACH_OFF : KL_REACH_OTHER;
    e->level_a = x.level;
    e->level_b = y.level;
}

static bool add_rules(struct kl_diff *d)
{
    struct kl_diff_effect *e = add_answer(d, KL_ROW_TRANSPORT);

    if (e) find_reach(d, e);
    return e || add_answer(d, KL_ROW_RELAY) || add_answer(d, KL_ROW_GDR);
}

/* ---- graphs ---- */

static bool fell_back(const struct kl_diff_side *side, int id)
{
    const struct kl_plan *p = side->planned.plan;
    const struct kl_graph_why *why = p->domain[p->domain_of[0]].graphs.why[id];

    return why && why->end == KL_END_FALLBACK;
}

static bool same_numbers(const struct kl_diff *d, const struct kl_graph *x, const struct kl_graph *y)
{
    const struct kl_plan *p = d->a.planned.plan;
    bool nets = p->domain[p->domain_of[0]].graphs.has_nets;

    return x->nchannels == y->nchannels && x->bw_intra == y->bw_intra && (!nets || x->bw_inter == y->bw_inter);
}

/* The difference of a graph; false if there is none. */
static bool compare_graph(const struct kl_diff *d, int id, enum kl_diff_effect_kind *kind)
{
    const struct kl_graph *x = kl_diff_graph(&d->a, id), *y = kl_diff_graph(&d->b, id);
    bool was = x && x->nchannels, now = y && y->nchannels;

    if (was != now)
        *kind = was ? KL_DIFF_GONE : KL_DIFF_APPEARED;
    else if (!was)
        return false;
    else if (!fell_back(&d->a, id) && fell_back(&d->b, id))
        *kind = KL_DIFF_LOST;
    else if (!same_numbers(d, x, y))
        *kind = KL_DIFF_NUMBERS;
    else if (x->type_intra != y->type_intra)
        *kind = KL_DIFF_PATHS;
    else
        return false;
    return true;
}

/* The first graph that differs; false if none does. */
static bool add_graphs(struct kl_diff *d)
{
    static const int order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_NVLS, KL_GRAPH_COLLNET_CHAIN,
                                KL_GRAPH_COLLNET_DIRECT};
    const long *changed = d->rows.changed;
    enum kl_diff_effect_kind kind;

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (!compare_graph(d, order[i], &kind)) continue;
        add(d, kind, NULL)->graph = order[i];
        return true;
    }
    if (!changed[KL_ROW_GRAPH] && !changed[KL_ROW_ORDER]) return false;
    if (changed[KL_ROW_GRAPH] || d->a.planned.plan->nranks != d->b.planned.plan->nranks)
        add(d, KL_DIFF_KEPT, NULL);
    else
        add(d, KL_DIFF_REORDERED, NULL);
    return true;
}

/* ---- times ---- */

/* Relative change of a time; 1 where there are not two of them. */
static float share_of(const struct kl_diff_row *r)
{
    bool both = r->a.choice.end == KL_CHOICE_MADE && r->b.choice.end == KL_CHOICE_MADE && r->a.choice.time > 0;
    float share = both ? r->b.choice.time / r->a.choice.time - 1 : 1;

    return share < 0 ? -share : share;
}

/* 64 MiB of AllReduce, which dominates most jobs; else the choice whose time changed most. */
static const struct kl_diff_row *telling_choice(const struct kl_diff *d)
{
    const struct kl_diff_row *most = NULL;
    float share = -1;

    for (int i = 0; i < d->rows.nrows; i++) {
        const struct kl_diff_row *r = &d->rows.row[i];

        if (r->what != KL_ROW_TUNING) continue;
        if (r->item == KL_FUNC_ALL_REDUCE && r->bytes == 64 << 20) return r;
        if (share_of(r) <= share) continue;
        share = share_of(r);
        most = r;
    }
    return most;
}

/* ---- the effects to name ---- */

static bool cause_has_setting(const struct kl_diff *d)
{
    for (int i = 0; i < d->facts.nfacts; i++)
        if (d->in_cause[i] && d->facts.fact[i].kind == KL_FACT_SETTING) return true;
    return false;
}

static void add_row(struct kl_diff *d, enum kl_diff_effect_kind kind, const struct kl_diff_row *row)
{
    if (row) add(d, kind, row);
}

static void find_effects(struct kl_diff *d)
{
    const long *changed = d->rows.changed;
    bool rules = cause_has_setting(d) && add_rules(d), graphs = add_graphs(d);

    if (!graphs) add_row(d, KL_DIFF_COUNT, first_row(d, KL_ROW_CHANNELS));
    add_row(d, KL_DIFF_TIME, telling_choice(d));
    if (!d->neffects) add_answer(d, KL_ROW_NIC);
    if (!changed[KL_ROW_TUNING]) add_answer(d, KL_ROW_SEND);
    if (!d->neffects) add_rules(d);
    if (graphs && !rules && !changed[KL_ROW_TUNING] && !changed[KL_ROW_SEND])
        add_row(d, KL_DIFF_GRAPH_NUMBER, first_row(d, KL_ROW_GRAPH));
    if (!graphs && !changed[KL_ROW_TUNING]) add(d, KL_DIFF_UNCHANGED, NULL);
}

/* ---- why nothing changes ---- */

static bool is_end(const struct kl_topo *t, int node, int end)
{
    const struct kl_node *n = &t->node[node];

    if (end == KL_LINK_END_NVS) return n->type == KL_NODE_NVS;
    if (end == KL_LINK_END_CPU) return n->type == KL_NODE_CPU;
    return n->type == KL_NODE_GPU && n->gpu.rank == end;
}

static bool path_uses(const struct kl_topo *t, const struct kl_path *p, const int ends[2])
{
    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        if ((is_end(t, l->from, ends[0]) && is_end(t, l->to, ends[1])) ||
            (is_end(t, l->from, ends[1]) && is_end(t, l->to, ends[0])))
            return true;
    }
    return false;
}

/* Only a ring without NICs closes inside the machine. */
static bool graph_uses(const struct kl_topo *t, const struct kl_graph *g, bool nets, const int ends[2])
{
    if (!g || g->pattern == KL_PATTERN_NVLS) return g && ends[1] == KL_LINK_END_NVS;
    for (int c = 0; c < g->nchannels; c++)
        for (int i = 0; i < g->ngpus - (nets || g->pattern != KL_PATTERN_RING); i++) {
            int x = kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus + i]);
            int y = kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus + (i + 1) % g->ngpus]);

            if (path_uses(t, kl_path_between(t, KL_NODE_GPU, x, KL_NODE_GPU, y), ends)) return true;
        }
    return false;
}

static bool plan_uses(const struct kl_plan *p, const int ends[2])
{
    for (int d = 0; d < p->ndomains; d++)
        for (int g = 0; g < KL_GRAPHS; g++)
            if (graph_uses(p->domain[d].topo, p->domain[d].graphs.graph[g], p->domain[d].graphs.has_nets, ends))
                return true;
    return false;
}

static enum kl_diff_why why_setting(struct kl_diff *d, const struct kl_fact *f)
{
    const struct kl_setting *over = &d->b.cluster.over[f->setting];
    const struct kl_param_name *other = kl_param_find_other(d->b.cluster.params, over->name);

    if (!f->param && other && other->note) {
        d->why_other = other->note;
        return KL_SAME_OTHER_NAME;
    }
    if (!f->param) return KL_SAME_NO_PARAMETER;
    return strcmp(f->was_set ? f->was.text : f->param->dfl, over->text) ? KL_SAME_NO_RULE : KL_SAME_VALUE;
}

static enum kl_diff_why why_fact(struct kl_diff *d, const struct kl_fact *f)
{
    const struct kl_plan *p = d->a.planned.plan;

    if (f->kind == KL_FACT_SETTING) return why_setting(d, f);
    if (f->kind == KL_FACT_LINK) return plan_uses(p, f->ends) ? KL_SAME_LINK_LEFT : KL_SAME_LINK_UNUSED;
    if (f->kind == KL_FACT_NET && !kl_topo_needs_net(p->domain[p->domain_of[0]].topo) && d->a.whole->count[KL_NODE_NET])
        return KL_SAME_NO_NETWORK;
    return KL_SAME_UNUSED;
}

static void find_why(struct kl_diff *d)
{
    const long *changed = d->rows.changed;

    if (!d->facts.nfacts && d->nchanges)
        d->why = KL_SAME_RELEASES;
    else if (!d->facts.nfacts)
        d->why = d->facts.meaningless ? KL_SAME_MEANINGLESS : KL_SAME_INPUT;
    else if (d->facts.nfacts > 1)
        d->why = KL_SAME_SEVERAL;
    else
        d->why = why_fact(d, &d->facts.fact[0]);
    d->paths_change = changed[KL_ROW_GPU_GPU] || changed[KL_ROW_GPU_NET] || changed[KL_ROW_NET_GPU];
}

void kl_diff_find_effect(struct kl_diff *d)
{
    if (d->nothing_changes)
        find_why(d);
    else
        find_effects(d);
}
