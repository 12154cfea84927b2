/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain_diff.h"

#include "api/param_sets.h"
#include "base/text.h"
#include "topo/paths.h"

#include <string.h>

/* ---- the cause ---- */

static void say_cause(struct kl_diff *d)
{
    enum { SAID = 3 };
    struct kl_text t = kl_text_over(d->cause, sizeof d->cause);
    int n = 0, said = 0;

    for (int i = 0; i < d->facts.nfacts; i++) n += d->in_cause[i];
    for (int i = 0; i < d->facts.nfacts && said < SAID; i++) {
        if (!d->in_cause[i]) continue;
        kl_text_add(&t, "%s%s", !said ? "" : said + 1 == n ? " and " : ", ", d->facts.fact[i].text);
        said++;
    }
    if (n > SAID) kl_text_add(&t, " and %d more differences", n - SAID);
    if (!n) kl_text_add(&t, "no difference");
}

/* ---- the effect ---- */

static void add_clause(struct kl_text *t, const char *clause)
{
    kl_text_add(t, "%s%s", t->length ? "; " : "", clause);
}

static const struct kl_diff_row *first_row(const struct kl_diff *d, int what)
{
    for (int i = 0; i < d->rows.nrows; i++)
        if (d->rows.row[i].what == what) return &d->rows.row[i];
    return NULL;
}

/* What was answered otherwise, by the first of these answers: "GPU/0 to GPU/1 (and 11 alike) uses SHM instead of P2P". */
static bool say_answer(const struct kl_diff *d, int what, const char *about, const char *verb, struct kl_text *t)
{
    const struct kl_diff_row *r = first_row(d, what);
    char clause[320], more[32] = "";
    long alike = 0;

    if (!r) return false;
    for (int i = 0; i < d->rows.nrows; i++) alike += kl_rows_alike(r, &d->rows.row[i]);
    if (alike > 1) snprintf(more, sizeof more, " (and %ld alike)", alike - 1);
    snprintf(clause, sizeof clause, "%s%s%s %s %s instead of %s", about, r->subject, more, verb, r->b.text, r->a.text);
    add_clause(t, clause);
    return true;
}

static bool say_rules(const struct kl_diff *d, struct kl_text *t)
{
    return say_answer(d, KL_ROW_TRANSPORT, "", "uses", t) || say_answer(d, KL_ROW_RELAY, "", "goes", t) ||
           say_answer(d, KL_ROW_GDR, "GPUDirect of ", "is", t);
}

static void say_numbers(const char *name, const struct kl_graph *x, const struct kl_graph *y, bool nets,
                        struct kl_text *t)
{
    bool outside = nets && x->bw_intra == y->bw_intra && x->bw_inter != y->bw_inter;
    double a = (double)(outside ? x->bw_inter : x->bw_intra), b = (double)(outside ? y->bw_inter : y->bw_intra);
    double all_a = a * x->nchannels, all_b = b * y->nchannels;
    const char *verb = all_b < all_a ? "drops" : all_b > all_a ? "rises" : "goes", *where = outside ? " to the network" : "";
    const char *plural = x->nchannels == 1 ? "" : "s";
    char clause[256];

    if (x->nchannels == y->nchannels)
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %g GB/s", name, verb, x->nchannels,
                 plural, a, where, b);
    else if (a == b)
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %d", name, verb, x->nchannels, plural,
                 a, where, y->nchannels);
    else
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %d of %g", name, verb, x->nchannels,
                 plural, a, where, y->nchannels, b);
    add_clause(t, clause);
}

static bool found(const struct kl_plan_domain *d, int id)
{
    return !d->graphs.why[id] || d->graphs.why[id]->end != KL_END_FALLBACK;
}

/* The first graph that came out otherwise; false if all of them are as they were. */
static bool say_graph(const struct kl_diff *d, int id, struct kl_text *t)
{
    const struct kl_plan *p = d->a.planned.plan, *q = d->b.planned.plan;
    const struct kl_plan_domain *da = &p->domain[p->domain_of[0]], *db = &q->domain[q->domain_of[0]];
    const struct kl_graph *x = da->graphs.graph[id], *y = db->graphs.graph[id];
    const char *name = kl_graph_name(id);
    char clause[256];

    bool was = x && x->nchannels, now = y && y->nchannels;

    if (was && now && found(da, id) && !found(db, id)) {
        snprintf(clause, sizeof clause,
                 "no %s is found any more, so the GPUs are taken in their order (%d channel%s of %g GB/s instead of %d of %g)",
                 name, y->nchannels, y->nchannels == 1 ? "" : "s", (double)y->bw_intra, x->nchannels,
                 (double)x->bw_intra);
        add_clause(t, clause);
        return true;
    }
    if (was != now) {
        snprintf(clause, sizeof clause, "there is %s %s graph", was ? "no longer a" : "now a", name);
        add_clause(t, clause);
        return true;
    }
    if (!was) return false;
    if (x->nchannels != y->nchannels || x->bw_intra != y->bw_intra || (da->graphs.has_nets && x->bw_inter != y->bw_inter)) {
        say_numbers(name, x, y, da->graphs.has_nets && db->graphs.has_nets, t);
        return true;
    }
    if (x->type_intra != y->type_intra) {
        snprintf(clause, sizeof clause, "the %s's paths inside go from %s to %s at the same bandwidth", name,
                 kl_path_type_name[x->type_intra], kl_path_type_name[y->type_intra]);
        add_clause(t, clause);
        return true;
    }
    return false;
}

static bool say_graphs(const struct kl_diff *d, struct kl_text *t)
{
    static const int order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_NVLS, KL_GRAPH_COLLNET_CHAIN,
                                KL_GRAPH_COLLNET_DIRECT};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (say_graph(d, order[i], t)) return true;
    if (!d->rows.changed[KL_ROW_GRAPH] && !d->rows.changed[KL_ROW_ORDER]) return false;
    add_clause(t, d->rows.changed[KL_ROW_GRAPH] ? "graphs keep their channels and bandwidths"
                                                : "the graphs change only the order of their channels");
    return true;
}

static void say_counts(const struct kl_diff *d, struct kl_text *t)
{
    const struct kl_diff_row *r = first_row(d, KL_ROW_CHANNELS);
    char clause[128];

    if (!r) return;
    snprintf(clause, sizeof clause, "%g instead of %g %s", (double)r->b.number, (double)r->a.number, r->subject);
    add_clause(t, clause);
}

/* 64 MiB of AllReduce, which most jobs wait for; else the choice whose time changed most. */
static const struct kl_diff_row *telling_choice(const struct kl_diff *d)
{
    const struct kl_diff_row *most = NULL;
    float share = -1;

    for (int i = 0; i < d->rows.nrows; i++) {
        const struct kl_diff_row *r = &d->rows.row[i];

        if (r->what != KL_ROW_TUNING) continue;
        if (!strcmp(r->subject, "AllReduce 64 MiB")) return r;
        float ratio = r->a.has_number && r->b.has_number && r->a.number > 0 ? r->b.number / r->a.number - 1 : 1;
        if (ratio < 0) ratio = -ratio;
        if (ratio <= share) continue;
        share = ratio;
        most = r;
    }
    return most;
}

static void say_time(const struct kl_diff *d, struct kl_text *t)
{
    const struct kl_diff_row *r = telling_choice(d);
    char clause[256], a[24], b[24];

    if (!r) return;
    if (r->a.has_number && r->b.has_number && r->a.number != r->b.number)
        snprintf(clause, sizeof clause, "%s from %s to %s us", r->subject, kl_diff_number(r->a.number, a),
                 kl_diff_number(r->b.number, b));
    else
        snprintf(clause, sizeof clause, "%s from \"%s\" to \"%s\"", r->subject, r->a.text, r->b.text);
    add_clause(t, clause);
}

static bool cause_has(const struct kl_diff *d, int kind)
{
    for (int i = 0; i < d->facts.nfacts; i++)
        if (d->in_cause[i] && d->facts.fact[i].kind == kind) return true;
    return false;
}

static void say_effect(struct kl_diff *d)
{
    struct kl_text t = kl_text_over(d->effect, sizeof d->effect);
    bool setting = cause_has(d, KL_FACT_SETTING), graphs;

    if (setting) say_rules(d, &t);
    graphs = say_graphs(d, &t);
    if (!graphs) say_counts(d, &t);
    say_time(d, &t);
    if (!t.length) say_answer(d, KL_ROW_NIC, "", "uses", &t);
    if (!d->rows.changed[KL_ROW_TUNING]) say_answer(d, KL_ROW_SEND, "sends from ", "use", &t);
    if (!t.length) say_rules(d, &t);
    if (!graphs && !d->rows.changed[KL_ROW_TUNING]) add_clause(&t, "graphs and times stay as they are");
}

/* ---- why nothing changes ---- */

static bool is_end(const struct kl_topo *t, int node, int end)
{
    const struct kl_node *n = &t->node[node];

    if (end == KL_END_NVS) return n->type == KL_NODE_NVS;
    if (end == KL_END_CPU) return n->type == KL_NODE_CPU;
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
    if (!g || g->pattern == KL_PATTERN_NVLS) return g && ends[1] == KL_END_NVS;
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

static void say_why_setting(const struct kl_diff *d, const struct kl_fact *f, struct kl_text *t)
{
    const struct kl_param_name *other = kl_param_find_other(&kl_param_registry, f->subject);
    const struct kl_setting *over = &d->b.cluster.over[f->setting];
    const struct kl_param *param = kl_param_find(&kl_param_registry, f->subject);
    struct kl_setting found;

    if (!param && other && other->note)
        kl_text_add(t, "it does not concern plans (%s)", other->note);
    else if (!param)
        kl_text_add(t, "NCCL has this setting, in Kolo it has no effect");
    else if (!strcmp(kl_settings_find(&d->a.cluster.settings, f->subject, &found) ? found.text : param->dfl, over->text))
        kl_text_add(t, "it was so before (%s)", f->a);
    else
        kl_text_add(t, "no rule that reads it answers otherwise on this machine");
}

static void say_why_fact(const struct kl_diff *d, const struct kl_fact *f, struct kl_text *t)
{
    const struct kl_plan *p = d->a.planned.plan;

    if (f->kind == KL_FACT_SETTING)
        say_why_setting(d, f, t);
    else if (f->kind == KL_FACT_LINK)
        kl_text_add(t, plan_uses(p, f->ends) ? "what is left still carries what the graphs take"
                                             : "no ring and no tree goes over it");
    else if (!p->domain[p->domain_of[0]].topo->count[KL_NODE_NET] && d->a.whole->count[KL_NODE_NET])
        kl_text_add(t, "all ranks are in one machine, so the network is not used; see --hosts");
    else
        kl_text_add(t, "no graph uses what it concerns");
}

static void say_why(struct kl_diff *d)
{
    struct kl_text t = kl_text_over(d->why, sizeof d->why);

    if (!d->facts.nfacts && d->facts.meaningless)
        kl_text_add(&t, "what differs in the files (%d) means nothing to a plan", d->facts.meaningless);
    else if (!d->facts.nfacts)
        kl_text_add(&t, "both sides are the same");
    else if (d->facts.nfacts > 1)
        kl_text_add(&t, "the graphs use nothing of what differs, or enough of it is left");
    else
        say_why_fact(d, &d->facts.fact[0], &t);
    if (d->rows.changed[KL_ROW_GPU_GPU] + d->rows.changed[KL_ROW_GPU_NET] + d->rows.changed[KL_ROW_NET_GPU])
        kl_text_add(&t, "; some paths change");
}

void kl_diff_say(struct kl_diff *d)
{
    say_cause(d);
    if (d->nothing_changes)
        say_why(d);
    else
        say_effect(d);
}
