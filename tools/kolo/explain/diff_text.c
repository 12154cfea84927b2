/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/explain/coll_print.h"
#include "tools/kolo/explain/diff_print.h"

#include <string.h>

enum { CELL = 160, PAGE = 100 };

/* Lines of three cells under titles. Printed twice: the first time, without `to`, only measures. */
struct table {
    FILE *to;
    const char *title; /* printed last */
    int subject, a;    /* widths */
};

static void widen(int *width, const char *text)
{
    int length = (int)strlen(text);

    if (length > *width) *width = length;
}

static void print_row(struct table *t, const char *title, const char *subject, const char *a, const char *b)
{
    if (!t->to) {
        widen(&t->subject, subject);
        widen(&t->a, a);
        return;
    }
    if (t->title != title) fprintf(t->to, "%s\n", title);
    t->title = title;
    fprintf(t->to, "  %-*s  %-*s  %s\n", t->subject, subject, t->a, a, b);
}

/* ---- facts ---- */

static const char *alone_text(const struct kl_fact *f)
{
    static const char *const texts[KL_FACT_EFFECTS] = {[KL_EFFECT_UNTRIED] = "",
                                                       [KL_EFFECT_ALL] = "   <- alone has the whole effect",
                                                       [KL_EFFECT_PART] = "   <- alone has another effect",
                                                       [KL_EFFECT_NOTHING] = "   <- alone has no effect"};

    return texts[f->alone];
}

static void print_facts(const struct kl_diff *d, struct table *t)
{
    for (int i = 0; i < d->facts.nfacts; i++) {
        const struct kl_fact *f = &d->facts.fact[i];
        bool setting = f->kind == KL_FACT_SETTING;
        char subject[CELL], b[CELL];
        struct kl_fact_words w;

        kl_fact_describe(d, f, &w);
        if (setting || f->kind == KL_FACT_MACHINE)
            snprintf(subject, sizeof subject, "%s", w.subject);
        else if (f->nmerged > 1)
            snprintf(subject, sizeof subject, "%.40s and %d more: %.40s", w.subject, f->nmerged - 1, w.what);
        else
            snprintf(subject, sizeof subject, "%.60s: %.60s", w.subject, w.what);
        snprintf(b, sizeof b, "%s%s", w.b, alone_text(f));
        print_row(t, setting ? "settings" : "system", subject, w.a, b);
    }
}

/* ---- rows ---- */

static void value_text(const struct kl_diff_row *r, const union kl_diff_value *value, char *text)
{
    struct kl_text t = kl_text_in(text, CELL);
    const char *unit = kl_row_kinds[r->what].unit;
    struct kl_value_words v;
    char number[24];

    kl_value_describe(r, value, &v);
    if (v.has_number && r->what == KL_ROW_TUNING) /* what people look for stands first */
        kl_text_add(&t, "%s, ", kl_coll_time_text((double)v.number, number));
    kl_text_add(&t, "%s%s", v.text, v.timeless ? " (*)" : "");
    if (v.has_number && r->what != KL_ROW_TUNING)
        kl_text_add(&t, "%s%s%s%s", t.length ? " " : "", kl_diff_number(v.number, number), unit && *unit ? " " : "",
                    unit ? unit : "");
}

/* Rows that say the same of many subjects. */
struct group {
    const struct kl_diff_row *first;
    int n, shared; /* an end that all of them have, -1 if there is none */
};

static struct group group_of(const struct kl_diff_rows *rows, int first)
{
    struct group g = {.first = &rows->row[first]};
    int x = g.first->from, y = g.first->to; /* candidates for it */

    for (int i = first; i < rows->nrows; i++) {
        const struct kl_diff_row *r = &rows->row[i];

        if (!kl_rows_alike(g.first, r)) continue;
        g.n++;
        if (r->from != x && r->to != x) x = -1;
        if (r->from != y && r->to != y) y = -1;
    }
    g.shared = x != -1 ? x : y;
    return g;
}

static bool is_first_of_group(const struct kl_diff_rows *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (kl_rows_alike(&rows->row[k], &rows->row[i])) return false;
    return true;
}

static void subject_text(const struct group *g, bool cut, char *text)
{
    char first[KL_SUBJECT_TEXT];

    if (g->n == 1)
        snprintf(text, CELL, "%s", kl_row_subject(g->first, first));
    else if (g->n == 2 || g->shared == -1 || g->first->what == KL_ROW_NIC)
        snprintf(text, CELL, "%s and %s%d alike", kl_row_subject(g->first, first), cut ? "at least " : "", g->n - 1);
    else if (g->shared <= -2)
        snprintf(text, CELL, "%d with NET/%d", g->n, -2 - g->shared);
    else
        snprintf(text, CELL, "%d with GPU/%d", g->n, g->shared);
}

/* All of AllReduce, and one large size of the others; a few of what there may be hundreds of. */
static bool is_shown(const struct kl_diff_row *r, int shown)
{
    enum { GROUPS_SHOWN = 8, ORDERS_SHOWN = 2 };

    if (r->what == KL_ROW_TUNING) return r->item == KL_FUNC_ALL_REDUCE || r->bytes == 64 << 20;
    if (r->what == KL_ROW_GRAPH) return true;
    return shown < (r->what == KL_ROW_ORDER ? ORDERS_SHOWN : GROUPS_SHOWN);
}

static void print_group(const struct group *g, bool cut, struct table *t)
{
    enum kl_diff_what what = g->first->what;
    char subject[CELL], a[CELL], b[CELL];

    subject_text(g, cut, subject);
    value_text(g->first, &g->first->a, a);
    value_text(g->first, &g->first->b, b);
    if (what != KL_ROW_ORDER)
        print_row(t, kl_row_kinds[what].title, subject, a, b);
    else if (t->to) { /* too wide for columns */
        if (t->title != kl_row_kinds[what].title) fprintf(t->to, "%s\n", kl_row_kinds[what].title);
        t->title = kl_row_kinds[what].title;
        fprintf(t->to, "  %s in A: %s\n  %*s in B: %s\n", subject, a, (int)strlen(subject), "", b);
    }
}

static void print_kind(const struct kl_diff_rows *rows, enum kl_diff_what what, struct table *t)
{
    int shown = 0;
    long told = 0;

    for (int i = 0; i < rows->nrows; i++) {
        struct group g = {.first = &rows->row[i], .n = 1, .shared = -1};

        if (rows->row[i].what != what || !is_shown(&rows->row[i], shown)) continue;
        if (kl_row_kinds[what].grouped) {
            if (!is_first_of_group(rows, i)) continue;
            g = group_of(rows, i);
        }
        print_group(&g, rows->changed[what] > KL_ROWS_LISTED, t);
        told += g.n;
        shown++;
    }
    if (t->to && told < rows->changed[what])
        fprintf(t->to, "  ... and %ld more; --json lists them\n", rows->changed[what] - told);
}

static void print_table(const struct kl_diff *d, struct table *t)
{
    if (t->to) fprintf(t->to, "  %-*s  %-*s  B\n", t->subject, "", t->a, "A");
    print_facts(d, t);
    for (int w = 0; w < KL_ROW_WHATS; w++) print_kind(&d->rows, (enum kl_diff_what)w, t);
}

/* ---- the page ---- */

static void print_totals(const struct kl_diff_rows *rows, FILE *to)
{
    int column = fprintf(to, "unchanged:");

    for (int w = 0, any = 0; w < KL_ROW_WHATS; w++) {
        char text[CELL];

        if (!rows->compared[w]) continue;
        snprintf(text, sizeof text, " %ld of %ld %s", rows->compared[w] - rows->changed[w], rows->compared[w],
                 kl_row_kinds[w].entries);
        if (any++) column += fprintf(to, ",");
        if (column + (int)strlen(text) > PAGE) {
            fprintf(to, "\n ");
            column = 1;
        }
        column += fprintf(to, "%s", text);
    }
    fprintf(to, "\n");
}

static void print_edits(const struct kl_edits *edit, FILE *to)
{
    for (int i = 0; i < edit->with.n; i++) fprintf(to, " --with %s", edit->with.text[i]);
    for (int i = 0; i < edit->without.n; i++) fprintf(to, " --without %s", edit->without.text[i]);
    for (int i = 0; i < edit->without_link.n; i++) fprintf(to, " --without-link %s", edit->without_link.text[i]);
}

static void print_side(const char *letter, const struct kl_diff_side *s, FILE *to)
{
    char words[128];
    struct kl_text size = kl_text_in(words, sizeof words);

    kl_cluster_size(&s->cluster, &size);
    fprintf(to, "%s: %s", letter, s->cluster.name);
    print_edits(&s->request->edits, to);
    fprintf(to, ", %s\n", words);
}

/* Where B leaves GPUs out, its ranks are others. */
static void print_names(const struct kl_diff *d, FILE *to)
{
    for (int r = 0; r < d->a.planned.plan->ranks_per_host; r++) {
        if (d->a.to_b[r] < 0 || d->a.to_b[r] == r) continue;
        fprintf(to, "Names are those of A: GPU/%d is rank %d in B.\n", r, d->a.to_b[r]);
        return;
    }
}

static void print_timeless(const struct kl_diff_rows *rows, FILE *to)
{
    for (int i = 0; i < rows->nrows; i++) {
        const struct kl_diff_row *r = &rows->row[i];

        if (r->what != KL_ROW_TUNING || (!r->a.choice.timeless && !r->b.choice.timeless)) continue;
        fprintf(to, "(*) Not to be trusted: %s.\n", kl_coll_timeless);
        return;
    }
}

static void print_note(const struct kl_diff *d, FILE *to)
{
    print_timeless(&d->rows, to);
    if (d->facts.nfacts < 2 || d->nothing_changes) return;
    if (d->verified)
        fprintf(to, "Checked: A with the cause alone gives B's graphs, channels and times.\n");
    else
        fprintf(to, "Not checked which of the differences would do alone.\n");
}

static void print_first_line(const struct kl_diff *d, FILE *to)
{
    char cause[KL_CAUSE_TEXT], effect[KL_CAUSE_TEXT], why[KL_WHY_NOT_TEXT], from[KL_NCCL_TEXT], until[KL_NCCL_TEXT];

    kl_diff_cause_text(d, cause);
    if (!d->facts.nfacts && d->a.cluster.options.nccl != d->b.cluster.options.nccl)
        snprintf(cause, sizeof cause, "NCCL %s instead of %s", kl_nccl_text(d->b.cluster.options.nccl, until),
                 kl_nccl_text(d->a.cluster.options.nccl, from));
    if (!d->nothing_changes) {
        kl_diff_effect_text(d, effect);
        fprintf(to, "%s: %s\n\n", cause, effect);
        return;
    }
    kl_diff_why_text(d, why);
    if (d->facts.nfacts || d->nchanges)
        fprintf(to, "nothing changes: %s; why: %s\n\n", cause, why);
    else
        fprintf(to, "nothing changes: %s\n\n", why);
}

static void print_change(const struct kl_diff_change *c, FILE *to)
{
    const struct kl_change_facts *f = kl_change_facts(c->change);
    char since[KL_NCCL_TEXT];

    fprintf(to, "  %-8s %s%s\n", kl_nccl_text(f->since, since), f->text,
            c->alone == KL_EFFECT_ALL ? "   <- alone has the whole effect" : "");
}

/* What is different between the releases that the sides follow: what matters here, or all where that is not known. */
static void print_releases(const struct kl_diff *d, FILE *to)
{
    char from[KL_NCCL_TEXT], until[KL_NCCL_TEXT];
    int shown = 0;

    if (!d->nchanges) return;
    kl_nccl_text(d->a.cluster.options.nccl, from);
    kl_nccl_text(d->b.cluster.options.nccl, until);
    for (int i = 0; i < d->nchanges; i++) {
        if (d->changes_tried && !kl_diff_change_matters(&d->change[i])) continue;
        if (!shown++)
            fprintf(to, "\nwhat changed between NCCL %s and %s%s:\n", from, until,
                    d->changes_tried ? " and has consequences here" : ", whether or not it has consequences here");
        print_change(&d->change[i], to);
    }
    if (shown < d->nchanges)
        fprintf(to, "%s%d %schange%s between NCCL %s and %s %s no consequences here%s.\n", shown ? "" : "\n",
                d->nchanges - shown, shown ? "other " : "", kl_plural(d->nchanges - shown), from, until,
                d->nchanges - shown == 1 ? "has" : "have", d->rows.nrows && !shown ? " by themselves" : "");
}

void kl_diff_text(const struct kl_diff *d, FILE *to)
{
    struct table t = {.to = NULL};

    print_first_line(d, to);
    print_side("A", &d->a, to);
    print_side("B", &d->b, to);
    fprintf(to, "\n");
    print_table(d, &t);
    if (t.a) {
        t.to = to;
        print_table(d, &t);
        fprintf(to, "\n");
    }
    print_totals(&d->rows, to);
    print_names(d, to);
    print_note(d, to);
    print_releases(d, to);
}
