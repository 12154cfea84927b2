/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/channels.h"
#include "base/text.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/order_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, SPANS = 4, WIDE = 60 };

/* ---- judgements ---- */

static const char *const scope_text[] = {
    [KL_ORDER_ON_RANKS] = "on every rank",   [KL_ORDER_IN_RUNS] = "run to run",  [KL_ORDER_AT_COUNTS] = "other counts",
    [KL_ORDER_BY_TOKEN] = "per token",       [KL_ORDER_IN_PLACE] = "in place",   [KL_ORDER_REGISTERED] = "registered",
    [KL_ORDER_CAPTURED] = "captured",        [KL_ORDER_IN_GROUP] = "in a group", [KL_ORDER_ON_HOSTS] = "other hosts",
    [KL_ORDER_IN_RELEASE] = "other releases"};

static void print_difference(const struct kl_order *o, const struct kl_order_difference *d, FILE *to)
{
    char grouped[KL_SIZE_TEXT], size[KL_SIZE_TEXT];
    char *a = d->element < 0 ? NULL : kl_order_expression(o, d->a),
         *b = d->element < 0 ? NULL : kl_order_expression(o, d->b);

    if (a && b && strlen(a) <= WIDE) {
        fprintf(to, "; first at element %s: %s, ", kl_grouped(d->element, grouped), a);
        if (d->bytes)
            fprintf(to, "at %s %s", kl_size_text(d->bytes, size), b);
        else
            fprintf(to, "then %s", b);
    } else if (a && b) {
        fprintf(to, "; first at element %s", kl_grouped(d->element, grouped));
    }
    free(a);
    free(b);
}

/* Scopes with one answer and text share a line. */
static void print_verdicts(const struct kl_order *o, FILE *to)
{
    for (int s = 0; s < KL_ORDER_SCOPES; s++) {
        const struct kl_order_verdict *v = &o->verdict[s];
        int end = s + 1;

        fprintf(to, "  %s", scope_text[s]);
        for (; end < KL_ORDER_SCOPES && o->verdict[end].answer == v->answer && !strcmp(o->verdict[end].text, v->text);
             end++)
            fprintf(to, ", %s", scope_text[end]);
        fprintf(to, ": %s%s%s", kl_order_result_name(v->answer), *v->text ? ": " : "", v->text);
        print_difference(o, &v->differs, to);
        fprintf(to, "\n");
        s = end - 1;
    }
}

/* ---- settings and lints ---- */

static void print_settings(const struct kl_order *o, FILE *to)
{
    if (!o->nsettings) fprintf(to, "  no setting was found that makes it the same at all counts\n");
    for (int i = 0; i < o->nsettings; i++) {
        const struct kl_order_setting *s = &o->setting[i];

        fprintf(to, "  %s: %s%s%s", i ? "or" : "the same at all counts with", s->set, *s->set ? ": " : "", s->text);
        if (*s->set && s->answer == KL_ORDER_UNKNOWN)
            fprintf(to, " (not planned)");
        else if (*s->set && s->cost_percent >= 0)
            fprintf(to, " (about %.0f %% longer at this size)", s->cost_percent);
        fprintf(to, "\n");
    }
}

static void print_lints(const struct kl_order *o, FILE *to)
{
    for (int i = 0; i < o->nlints; i++) fprintf(to, "  %s: %s\n", o->lint[i].code, o->lint[i].text);
}

/* ---- sums ---- */

/* "0-3, 8-9"; the rest is counted. */
static void add_spans(const struct kl_order *o, int block, int sum, struct kl_text *text, uint64_t *channels)
{
    int64_t first = -1, end = -1;
    int n = 0;

    for (int i = 0; i <= o->ranges.n; i++) {
        const struct kl_order_range *r = i < o->ranges.n ? &o->ranges.range[i] : NULL;

        if (r && (r->sum != sum || r->block != block)) continue;
        if (r) *channels |= (uint64_t)1 << r->channel;
        if (r && r->first == end) {
            end += r->count;
            continue;
        }
        if (first >= 0 && n++ < SPANS) kl_text_add(text, "%s%" PRId64 "-%" PRId64, n > 1 ? ", " : "", first, end - 1);
        if (r) first = r->first, end = first + r->count;
    }
    if (n > SPANS) kl_text_add(text, ", and %d more", n - SPANS);
}

static void print_row(const struct kl_order *o, const struct kl_order_range *r, int width, FILE *to)
{
    char spans[256], names[KL_CHANNELS_TEXT], *sum = kl_order_expression(o, r->sum);
    struct kl_text text = kl_text_in(spans, sizeof spans);
    uint64_t channels = 0;

    add_spans(o, r->block, r->sum, &text, &channels);
    fprintf(to, "  %-*s  ", width, sum ? sum : "");
    if (o->request.func == KL_FUNC_REDUCE_SCATTER) fprintf(to, "block %-4d ", r->block);
    fprintf(to, "%-44s %s\n", spans, kl_channels_text(channels, names, sizeof names));
    free(sum);
}

static bool is_first(const struct kl_order *o, int i)
{
    const struct kl_order_range *r = &o->ranges.range[i];

    for (int k = 0; k < i; k++)
        if (o->ranges.range[k].sum == r->sum && o->ranges.range[k].block == r->block) return false;
    return true;
}

static void print_sums(const struct kl_order *o, FILE *to)
{
    int width = 4, rows = 0;

    for (int i = 0; i < o->ranges.n && i < 64; i++) {
        char *sum = kl_order_expression(o, o->ranges.range[i].sum);

        if (sum && (int)strlen(sum) > width) width = (int)strlen(sum);
        free(sum);
    }
    fprintf(to, "\n  %-*s  %s%-44s channels\n", width, "sum",
            o->request.func == KL_FUNC_REDUCE_SCATTER ? "of         " : "", "elements");
    for (int i = 0; i < o->ranges.n; i++) {
        if (!is_first(o, i)) continue;
        if (rows++ < ROWS) print_row(o, &o->ranges.range[i], width, to);
    }
    if (rows > ROWS) fprintf(to, "  ... %d more; --json has all\n", rows - ROWS);
}

static void print_elements(const struct kl_order *o, const int64_t *element, int n, FILE *to)
{
    for (int i = 0; i < n; i++) {
        const struct kl_order_range *r = kl_order_range_at(o, 0, element[i]);
        char *sum = r ? kl_order_expression(o, r->sum) : NULL;

        if (r)
            fprintf(to, "  element %" PRId64 ": %s, channel %d\n", element[i], sum ? sum : "", r->channel);
        else
            fprintf(to, "  element %" PRId64 ": there are %" PRId64 "\n", element[i], o->op->count);
        free(sum);
    }
}

static void print_vs(const struct kl_order_answer *a, FILE *to)
{
    const struct kl_order *o = &a->order;
    const char *vs = a->question.vs;

    if (!vs) return;
    if (o->exact || o->rules.nranks <= 2) {
        fprintf(to, "  with %s: the same bits\n", vs);
    } else if (kl_order_undefined(o->op->choice.algo)) {
        fprintf(to, "  with %s: unknown\n", vs);
    } else {
        fprintf(to, "  with %s: %s", vs, a->differs.element < 0 ? "all common elements have equal sums" : "other sums");
        print_difference(o, &a->differs, to);
        fprintf(to, "\n");
    }
}

static void print_headline(const struct kl_order_answer *a, FILE *to)
{
    char line[256];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_order_summary(&a->order, &text);
    kl_coll_headline(&a->asked, to);
    fprintf(to, ": %s\n", line);
}

void kl_order_text(const struct kl_order_answer *a, const int64_t *element, int nelements, FILE *to)
{
    const struct kl_order *o = &a->order;
    char line[256];
    struct kl_text text = kl_text_in(line, sizeof line);

    print_headline(a, to);
    if (a->question.lint) {
        if (!o->nlints) fprintf(to, "  nothing to remark\n");
        print_lints(o, to);
        return;
    }
    kl_explain_place(a->asked.cluster, "", to);
    kl_order_arithmetic_text(o, &text);
    fprintf(to, "  %s\n", line);
    print_vs(a, to);
    print_verdicts(o, to);
    print_settings(o, to);
    print_lints(o, to);
    print_elements(o, element, nelements, to);
    if (!kl_order_undefined(o->op->choice.algo) || o->op->choice.algo == KL_ALGO_NVLS_TREE) print_sums(o, to);
}
