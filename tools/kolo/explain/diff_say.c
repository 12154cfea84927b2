/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "base/text.h"
#include "tools/kolo/explain/coll_print.h"
#include "topo/paths.h"

#include <string.h>

/* ---- the cause ---- */

static bool alike(const struct kl_fact *x, const struct kl_fact *y)
{
    return *x->predicate && x->kind == y->kind && !strcmp(x->predicate, y->predicate);
}

/* Is it the first of those in the cause that say the same of different things? `n`: of how many. */
static bool leads(const struct kl_diff *d, int fact, int *n)
{
    *n = 0;
    for (int i = 0; i < d->facts.nfacts; i++) {
        if (!d->in_cause[i] || (i != fact && !alike(&d->facts.fact[i], &d->facts.fact[fact]))) continue;
        if (i < fact) return false;
        *n += d->facts.fact[i].nmerged;
    }
    return true;
}

static void say_cause(struct kl_diff *d)
{
    enum { SAID = 3 };
    struct kl_text t = kl_text_over(d->cause, sizeof d->cause);
    int n = 0, said = 0, many;

    for (int i = 0; i < d->facts.nfacts; i++) n += d->in_cause[i] && leads(d, i, &many);
    for (int i = 0; i < d->facts.nfacts && said < SAID; i++) {
        const struct kl_fact *f = &d->facts.fact[i];

        if (!d->in_cause[i] || !leads(d, i, &many)) continue;
        kl_text_add(&t, "%s", !said ? "" : said + 1 == n ? ", and " : ", ");
        if (many > f->nmerged)
            kl_text_add(&t, "%s and %d more: each %s", f->subject, many - 1, f->predicate);
        else
            kl_text_add(&t, "%s", f->text);
        said++;
    }
    if (n > SAID) kl_text_add(&t, ", and %d more differences", n - SAID);
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

/* How far P2P may reach for the first pair whose transport changed, if that is what changed. */
static void say_reach(const struct kl_diff *d, struct kl_text *t)
{
    const struct kl_diff_row *r = first_row(d, KL_ROW_TRANSPORT);
    struct kl_p2p x, y;
    int gpu;

    if (!r || kl_topo_p2p(kl_diff_topo(&d->a, r->from, &gpu), r->from, r->to, &x) ||
        kl_topo_p2p(kl_diff_topo(&d->b, d->a.to_b[r->from], &gpu), d->a.to_b[r->from], d->a.to_b[r->to], &y))
        return;
    if (x.level == y.level && x.p2p == y.p2p) return;
    if (y.why == KL_P2P_DISABLED)
        kl_text_add(t, ", as P2P is switched off");
    else
        kl_text_add(t, ", as P2P may reach as far as %s instead of %s", kl_path_type_name[y.level],
                    kl_path_type_name[x.level]);
}

static bool say_rules(const struct kl_diff *d, struct kl_text *t)
{
    if (say_answer(d, KL_ROW_TRANSPORT, "", "uses", t)) {
        say_reach(d, t);
        return true;
    }
    return say_answer(d, KL_ROW_RELAY, "", "goes", t) || say_answer(d, KL_ROW_GDR, "GPUDirect of ", "is", t);
}

static const char *graph_words(int id)
{
    static const char *const words[KL_GRAPHS] = {
        [KL_GRAPH_RING] = "ring",
        [KL_GRAPH_TREE] = "tree",
        [KL_GRAPH_NVLS] = "NVLS graph",
        [KL_GRAPH_COLLNET_CHAIN] = "CollNet chain",
        [KL_GRAPH_COLLNET_DIRECT] = "CollNet direct graph",
    };

    return words[id];
}

static void say_numbers(const char *name, const struct kl_graph *x, const struct kl_graph *y, bool nets,
                        struct kl_text *t)
{
    bool outside = nets && x->bw_intra == y->bw_intra && x->bw_inter != y->bw_inter;
    double a = (double)(outside ? x->bw_inter : x->bw_intra), b = (double)(outside ? y->bw_inter : y->bw_intra);
    double all_a = a * x->nchannels, all_b = b * y->nchannels;
    const char *verb = all_b < all_a   ? "drops"
                       : all_b > all_a ? "rises"
                                       : "goes",
               *where = outside ? " to the network" : "";
    const char *plural = kl_plural(x->nchannels);
    char clause[256];

    if (x->nchannels == y->nchannels)
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %g GB/s", name, verb, x->nchannels,
                 plural, a, where, b);
    else if (a == b)
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %d", name, verb, x->nchannels,
                 plural, a, where, y->nchannels);
    else
        snprintf(clause, sizeof clause, "the %s %s from %d channel%s of %g GB/s%s to %d of %g", name, verb,
                 x->nchannels, plural, a, where, y->nchannels, b);
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
    const char *name = graph_words(id);
    char clause[256];

    bool was = x && x->nchannels, now = y && y->nchannels;

    if (was && now && found(da, id) && !found(db, id)) {
        snprintf(clause, sizeof clause,
                 "no %s is found any more, so the GPUs are taken in their order (%d channel%s of %g GB/s instead of %d "
                 "of %g)",
                 name, y->nchannels, kl_plural(y->nchannels), (double)y->bw_intra, x->nchannels, (double)x->bw_intra);
        add_clause(t, clause);
        return true;
    }
    if (was != now) {
        snprintf(clause, sizeof clause, "there is %s %s", was ? "no longer any" : "now a", name);
        add_clause(t, clause);
        return true;
    }
    if (!was) return false;
    if (x->nchannels != y->nchannels || x->bw_intra != y->bw_intra ||
        (da->graphs.has_nets && x->bw_inter != y->bw_inter)) {
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
    const struct kl_plan *p = d->a.planned.plan, *q = d->b.planned.plan;
    static const int order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_NVLS, KL_GRAPH_COLLNET_CHAIN,
                                KL_GRAPH_COLLNET_DIRECT};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (say_graph(d, order[i], t)) return true;
    if (!d->rows.changed[KL_ROW_GRAPH] && !d->rows.changed[KL_ROW_ORDER]) return false;
    if (d->rows.changed[KL_ROW_GRAPH] || p->nranks != q->nranks)
        add_clause(t, "the graphs keep their channels and bandwidths");
    else
        add_clause(t, "the graphs only take another order");
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
    if (r->a.timeless || r->b.timeless)
        kl_text_add(t, ", but %s not to be trusted: %s",
                    !r->b.timeless   ? "the first is"
                    : !r->a.timeless ? "the second is"
                                     : "both are",
                    kl_coll_timeless);
}

static bool cause_has(const struct kl_diff *d, int kind)
{
    for (int i = 0; i < d->facts.nfacts; i++)
        if (d->in_cause[i] && d->facts.fact[i].kind == kind) return true;
    return false;
}

/* What of the graphs is otherwise, though not their channels and bandwidths. */
static void say_rest(const struct kl_diff *d, struct kl_text *t)
{
    const struct kl_diff_row *r = first_row(d, KL_ROW_GRAPH);
    char clause[256], a[24], b[24];

    if (!r) return;
    snprintf(clause, sizeof clause, "%s %s instead of %s", r->subject,
             r->b.has_number ? kl_diff_number(r->b.number, b) : r->b.text,
             r->a.has_number ? kl_diff_number(r->a.number, a) : r->a.text);
    add_clause(t, clause);
}

static void say_effect(struct kl_diff *d)
{
    struct kl_text t = kl_text_over(d->effect, sizeof d->effect);
    bool setting = cause_has(d, KL_FACT_SETTING), graphs, rules = setting && say_rules(d, &t);

    graphs = say_graphs(d, &t);
    if (!graphs) say_counts(d, &t);
    say_time(d, &t);
    if (!t.length) say_answer(d, KL_ROW_NIC, "", "uses", &t);
    if (!d->rows.changed[KL_ROW_TUNING]) say_answer(d, KL_ROW_SEND, "sends from ", "use", &t);
    if (!t.length) say_rules(d, &t);
    if (graphs && !rules && !d->rows.changed[KL_ROW_TUNING] && !d->rows.changed[KL_ROW_SEND]) say_rest(d, &t);
    if (!graphs && !d->rows.changed[KL_ROW_TUNING]) add_clause(&t, "graphs and times stay as they are");
}

void kl_diff_say(struct kl_diff *d)
{
    say_cause(d);
    if (d->nothing_changes)
        kl_diff_say_why(d);
    else
        say_effect(d);
}
