/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/coll.h"
#include "answer/diff.h"

/* ---- the cause ---- */

void kl_diff_cause_text(const struct kl_diff *d, char text[KL_CAUSE_TEXT])
{
    enum { SAID = 3 };
    struct kl_text t = kl_text_in(text, KL_CAUSE_TEXT);
    struct kl_fact_words w;
    int n = 0, said = 0, many;

    for (int i = 0; i < d->facts.nfacts; i++) n += d->in_cause[i] && kl_diff_leads(d, i, &many);
    for (int i = 0; i < d->facts.nfacts && said < SAID; i++) {
        if (!d->in_cause[i] || !kl_diff_leads(d, i, &many)) continue;
        kl_fact_describe(d, &d->facts.fact[i], &w);
        kl_text_add(&t, "%s", !said ? "" : said + 1 == n ? ", and " : ", ");
        if (many > d->facts.fact[i].nmerged)
            kl_text_add(&t, "%s and %d more: each %s", w.subject, many - 1, w.predicate);
        else
            kl_text_add(&t, "%s", w.text);
        said++;
    }
    if (n > SAID) kl_text_add(&t, ", and %d more differences", n - SAID);
}

/* ---- the effect ---- */

struct both {
    struct kl_value_words a, b;
};

static struct both words_of(const struct kl_diff_row *r)
{
    struct both w;

    kl_value_describe(r, &r->a, &w.a);
    kl_value_describe(r, &r->b, &w.b);
    return w;
}

/* "GPU/0 to GPU/1 (and 11 alike) uses SHM instead of P2P". */
static void say_answer(const struct kl_diff_effect *e, struct kl_text *t)
{
    static const struct {
        const char *about, *verb;
    } phrases[KL_ROW_WHATS] = {
        [KL_ROW_TRANSPORT] = {"", "uses"},      [KL_ROW_RELAY] = {"", "goes"},
        [KL_ROW_GDR] = {"GPUDirect of ", "is"}, [KL_ROW_NIC] = {"", "uses"},
        [KL_ROW_SEND] = {"sends from ", "use"},
    };
    struct both w = words_of(e->row);
    char subject[KL_SUBJECT_TEXT];

    kl_text_add(t, "%s%s", phrases[e->row->what].about, kl_row_subject(e->row, subject));
    if (e->nalike > 1) kl_text_add(t, " (and %d alike)", e->nalike - 1);
    kl_text_add(t, " %s %s instead of %s", phrases[e->row->what].verb, w.b.text, w.a.text);
    if (e->reach == KL_REACH_OFF) kl_text_add(t, ", as P2P is switched off");
    if (e->reach == KL_REACH_OTHER)
        kl_text_add(t, ", as P2P may reach as far as %s instead of %s", kl_path_type_name[e->level_b],
                    kl_path_type_name[e->level_a]);
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

static bool has_nets(const struct kl_diff_side *side)
{
    const struct kl_plan *p = side->planned.plan;

    return p->domain[p->domain_of[0]].graphs.has_nets;
}

static const char *verb_of(double before, double after)
{
    if (before == after) return "goes";
    return after < before ? "drops" : "rises";
}

static void say_numbers(const struct kl_diff *d, int id, struct kl_text *t)
{
    const struct kl_graph *x = kl_diff_graph(&d->a, id), *y = kl_diff_graph(&d->b, id);
    bool nets = has_nets(&d->a) && has_nets(&d->b);
    bool outside = nets && x->bw_intra == y->bw_intra && x->bw_inter != y->bw_inter;
    double a = (double)(outside ? x->bw_inter : x->bw_intra), b = (double)(outside ? y->bw_inter : y->bw_intra);

    kl_text_add(t, "the %s %s from %d channel%s of %g GB/s%s to ", graph_words(id),
                verb_of(a * x->nchannels, b * y->nchannels), x->nchannels, kl_plural(x->nchannels), a,
                outside ? " to the network" : "");
    if (x->nchannels == y->nchannels)
        kl_text_add(t, "%g GB/s", b);
    else if (a == b)
        kl_text_add(t, "%d", y->nchannels);
    else
        kl_text_add(t, "%d of %g", y->nchannels, b);
}

static void say_lost(const struct kl_diff *d, int id, struct kl_text *t)
{
    const struct kl_graph *x = kl_diff_graph(&d->a, id), *y = kl_diff_graph(&d->b, id);

    kl_text_add(t,
                "no %s is found any more, so the GPUs are taken in their order (%d channel%s of %g GB/s instead of %d "
                "of %g)",
                graph_words(id), y->nchannels, kl_plural(y->nchannels), (double)y->bw_intra, x->nchannels,
                (double)x->bw_intra);
}

static void say_paths(const struct kl_diff *d, int id, struct kl_text *t)
{
    kl_text_add(t, "the %s's paths inside go from %s to %s at the same bandwidth", graph_words(id),
                kl_path_type_name[kl_diff_graph(&d->a, id)->type_intra],
                kl_path_type_name[kl_diff_graph(&d->b, id)->type_intra]);
}

static void say_time(const struct kl_diff_row *r, struct kl_text *t)
{
    struct both w = words_of(r);
    char subject[KL_SUBJECT_TEXT], a[KL_COLL_TIME_TEXT], b[KL_COLL_TIME_TEXT];

    kl_row_subject(r, subject);
    if (w.a.has_number && w.b.has_number && w.a.number != w.b.number)
        kl_text_add(t, "%s from %s to %s", subject, kl_coll_time_text((double)w.a.number, a),
                    kl_coll_time_text((double)w.b.number, b));
    else
        kl_text_add(t, "%s from \"%s\" to \"%s\"", subject, w.a.text, w.b.text);
    if (w.a.timeless || w.b.timeless)
        kl_text_add(t, ", but %s not to be trusted: %s",
                    !w.b.timeless   ? "the first is"
                    : !w.a.timeless ? "the second is"
                                    : "both are",
                    kl_coll_timeless);
}

/* What of the graphs is otherwise, though not their channels and bandwidths. */
static void say_graph_number(const struct kl_diff_row *r, struct kl_text *t)
{
    struct both w = words_of(r);
    char subject[KL_SUBJECT_TEXT], a[24], b[24];

    kl_text_add(t, "%s %s instead of %s", kl_row_subject(r, subject),
                w.b.has_number ? kl_diff_number(w.b.number, b) : w.b.text,
                w.a.has_number ? kl_diff_number(w.a.number, a) : w.a.text);
}

static void say_effect(const struct kl_diff *d, const struct kl_diff_effect *e, struct kl_text *t)
{
    char subject[KL_SUBJECT_TEXT];

    switch (e->kind) {
    case KL_DIFF_ANSWER:
        say_answer(e, t);
        break;
    case KL_DIFF_LOST:
        say_lost(d, e->graph, t);
        break;
    case KL_DIFF_GONE:
        kl_text_add(t, "there is no longer any %s", graph_words(e->graph));
        break;
    case KL_DIFF_APPEARED:
        kl_text_add(t, "there is now a %s", graph_words(e->graph));
        break;
    case KL_DIFF_NUMBERS:
        say_numbers(d, e->graph, t);
        break;
    case KL_DIFF_PATHS:
        say_paths(d, e->graph, t);
        break;
    case KL_DIFF_KEPT:
        kl_text_add(t, "the graphs keep their channels and bandwidths");
        break;
    case KL_DIFF_REORDERED:
        kl_text_add(t, "only the order of the graphs changes");
        break;
    case KL_DIFF_COUNT:
        kl_text_add(t, "%d instead of %d %s", e->row->b.count, e->row->a.count, kl_row_subject(e->row, subject));
        break;
    case KL_DIFF_TIME:
        say_time(e->row, t);
        break;
    case KL_DIFF_GRAPH_NUMBER:
        say_graph_number(e->row, t);
        break;
    case KL_DIFF_UNCHANGED:
        kl_text_add(t, "graphs and times stay as they are");
        break;
    }
}

void kl_diff_effect_text(const struct kl_diff *d, char text[KL_CAUSE_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_CAUSE_TEXT);

    for (int i = 0; i < d->neffects; i++) {
        if (i) kl_text_add(&t, "; ");
        say_effect(d, &d->effect[i], &t);
    }
}

/* ---- why there is none ---- */

void kl_diff_why_text(const struct kl_diff *d, char text[KL_WHY_NOT_TEXT])
{
    static const char *const texts[] = {
        [KL_SAME_RELEASES] = "both releases plan this machine the same way",
        [KL_SAME_INPUT] = "both sides are the same machine with the same settings",
        [KL_SAME_SEVERAL] = "the graphs use nothing of what differs, or enough of it is left",
        [KL_SAME_NO_PARAMETER] = "NCCL has this setting, in Kolo it has no effect",
        [KL_SAME_NO_RULE] = "no rule that reads it gives another answer on this machine",
        [KL_SAME_LINK_LEFT] = "what is left still carries what the graphs take",
        [KL_SAME_LINK_UNUSED] = "no ring and no tree goes over it",
        [KL_SAME_NO_NETWORK] = "all ranks are in one machine, so the network is not used; see --hosts",
        [KL_SAME_UNUSED] = "no graph uses what it concerns",
    };
    struct kl_text t = kl_text_in(text, KL_WHY_NOT_TEXT);
    struct kl_fact_words w;

    switch (d->why) {
    case KL_SAME_MEANINGLESS:
        kl_text_add(&t, "what differs in the files (%d) does not affect a plan", d->facts.meaningless);
        break;
    case KL_SAME_OTHER_NAME:
        kl_text_add(&t, "it does not concern plans (%s)", d->why_other);
        break;
    case KL_SAME_VALUE:
        kl_fact_describe(d, &d->facts.fact[0], &w);
        kl_text_add(&t, "it was so before (%s)", w.a);
        break;
    default:
        kl_text_add(&t, "%s", texts[d->why]);
    }
    if (d->paths_change) kl_text_add(&t, "; some paths change");
}
