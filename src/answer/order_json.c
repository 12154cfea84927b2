/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/graph_json.h"
#include "answer/order.h"
#include "answer/output.h"
#include "answer/schema.h"
#include "base/error.h"
#include "base/text.h"
#include "device/host/redop.h"

#include <stdlib.h>

/* ---- sums, numbered as they appear ---- */

struct numbers {
    const struct kl_order *order;
    int *number; /* by term; -1: none yet */
    int n;
    json_t *sums;
};

static json_t *tree_json(const struct kl_order_sums *s, int sum)
{
    const struct kl_order_term *t = &s->term[sum];

    if (t->leaf == KL_LEAF_RANK) return json_integer(t->left);
    if (t->leaf == KL_LEAF_SWITCH) return json_pack("{s:i}", "switch", t->left);
    if (t->leaf == KL_LEAF_NETWORK) return json_pack("{s:b}", "network", 1);
    return json_pack("[o,o]", tree_json(s, t->left), tree_json(s, t->right));
}

static int number_of(struct numbers *u, int sum)
{
    if (u->number[sum] < 0) {
        char *text = kl_order_expression(u->order, sum);

        u->number[sum] = u->n++;
        json_array_append_new(u->sums, json_pack("{s:i,s:s,s:o}", "id", u->number[sum], "text", text ? text : "",
                                                 "tree", tree_json(u->order->sums, sum)));
        free(text);
    }
    return u->number[sum];
}

static json_t *ranges_json(struct numbers *u, int block)
{
    json_t *a = json_array();

    for (int i = 0; i < u->order->ranges.n; i++) {
        const struct kl_order_range *r = &u->order->ranges.range[i];
        json_t *o;

        if (r->block != block) continue;
        o = json_pack("{s:I,s:I,s:i,s:i}", "first", (json_int_t)r->first, "count", (json_int_t)r->count, "channel",
                      r->channel, "sum", number_of(u, r->sum));
        if (r->head >= 0) json_object_set_new(o, "head", json_integer(r->head));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *blocks_json(struct numbers *u)
{
    json_t *a = json_array();

    for (int b = 0; b < u->order->rules.nranks; b++) json_array_append_new(a, ranges_json(u, b));
    return a;
}

static json_t *parts_json(const struct kl_order *o)
{
    int64_t size = (int64_t)kl_type_bytes(o->request.type);
    json_t *a = json_array();

    for (int i = 0; i < o->op->nparts; i++) {
        const struct kl_order_part *p = &o->op->part[i];

        json_array_append_new(a, json_pack("{s:i,s:I,s:I,s:I}", "channel", p->channel, "first", (json_int_t)p->first,
                                           "count", (json_int_t)p->count, "chunk_elements",
                                           (json_int_t)(p->chunk / size)));
    }
    return a;
}

/* ---- judgements ---- */

static json_t *difference_json(const struct kl_order *o, const struct kl_order_difference *d)
{
    if (d->element < 0) return json_null();
    char *a = kl_order_expression(o, d->a), *b = kl_order_expression(o, d->b);
    json_t *j = json_pack("{s:I,s:i,s:s,s:s,s:o}", "element", (json_int_t)d->element, "block", d->block, "a",
                          a ? a : "", "b", b ? b : "", "b_bytes", d->bytes ? json_integer(d->bytes) : json_null());

    free(a);
    free(b);
    return j;
}

static json_t *verdicts_json(const struct kl_order *o)
{
    json_t *all = json_object();

    for (int s = 0; s < KL_ORDER_SCOPES; s++) {
        const struct kl_order_verdict *v = &o->verdict[s];

        json_object_set_new(all, kl_order_scope_name((enum kl_order_scope)s),
                            json_pack("{s:s,s:s,s:s,s:o}", "verdict", kl_order_result_name(v->answer), "code", v->code,
                                      "text", v->text, "first_difference", difference_json(o, &v->differs)));
    }
    return all;
}

static json_t *settings_json(const struct kl_order *o)
{
    json_t *a = json_array();

    for (int i = 0; i < o->nsettings; i++) {
        const struct kl_order_setting *s = &o->setting[i];

        json_array_append_new(a, json_pack("{s:s,s:s,s:o,s:b,s:s}", "set", s->set, "verdict",
                                           kl_order_result_name(s->answer), "cost_percent",
                                           s->cost_percent < 0 ? json_null() : json_real(s->cost_percent), "estimate",
                                           1, "text", s->text));
    }
    return a;
}

static json_t *lints_json(const struct kl_order *o)
{
    json_t *a = json_array();

    for (int i = 0; i < o->nlints; i++)
        json_array_append_new(a, json_pack("{s:s,s:s}", "code", o->lint[i].code, "text", o->lint[i].text));
    return a;
}

static json_t *arithmetic_json(const struct kl_order *o)
{
    char line[256];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_order_arithmetic_text(o, &text);
    return json_pack("{s:s,s:s,s:s,s:s?}", "rounding", kl_order_rounding(o), "accumulator", kl_order_accumulator(o),
                     "text", line, "avg",
                     o->request.op != ncclAvg                  ? NULL
                     : o->rules.nranks & (o->rules.nranks - 1) ? "scaled_first"
                                                               : "scaled_first_exact");
}

/* ---- the answer ---- */

/* The keys that both answers begin with; "first_bytes" to "last_bytes" are the sizes that are called. */
static json_t *begin_json(const struct kl_order_answer *a)
{
    const struct kl_order *o = &a->order;
    const struct kl_tuning_choice *c = &o->op->choice;
    struct kl_coll_asked called = a->asked;
    char line[256];
    struct kl_text text = kl_text_in(line, sizeof line);

    called.first = a->first;
    called.last = a->last;
    json_t *j = kl_coll_question_json(&called);

    kl_order_summary(o, &text);
    json_object_update_new(j, json_pack("{s:s,s:i,s:I,s:I,s:s,s:s,s:i,s:i}", "summary", line, "root", o->request.root,
                                        "bytes", (json_int_t)o->request.bytes, "count", (json_int_t)o->op->count,
                                        "algorithm", kl_algo_name[c->algo], "protocol", kl_proto_name[c->proto],
                                        "channels", o->op->last_channel - o->op->first_channel + 1, "first_channel",
                                        o->op->first_channel));
    return j;
}

static void add_sums(struct numbers *u, json_t *j)
{
    const struct kl_order *o = u->order;

    json_object_update_new(j, json_pack("{s:i,s:i,s:o}", "same_ring_prefix", o->alike_rings, "same_tree_sum_prefix",
                                        o->alike_trees, "parts", parts_json(o)));
    if (o->request.func == KL_FUNC_REDUCE_SCATTER)
        json_object_set_new(j, "blocks", blocks_json(u));
    else
        json_object_set_new(j, "ranges", ranges_json(u, 0));
    json_object_set(j, "sums", u->sums);
}

/* Is each element's sum the same there? Null where that is not known. */
static json_t *vs_json(const struct kl_order_answer *a)
{
    const struct kl_order *o = &a->order;
    const bool any = o->exact || o->rules.nranks <= 2;
    json_t *equal = any                                      ? json_true()
                    : kl_order_undefined(o->op->choice.algo) ? json_null()
                                                             : json_boolean(a->differs.element < 0);

    return json_pack("{s:s,s:o,s:o}", "with", a->question.vs, "equal", equal, "first_difference",
                     any ? json_null() : difference_json(o, &a->differs));
}

static void add_judgements(const struct kl_order_answer *a, json_t *j)
{
    const struct kl_order *o = &a->order;

    json_object_set_new(j, "arithmetic", arithmetic_json(o));
    json_object_set_new(j, "invariant", verdicts_json(o));
    json_object_set_new(j, "cheapest", settings_json(o));
    if (a->question.vs) json_object_set_new(j, "vs", vs_json(a));
}

ncclResult_t kl_order_json(const struct kl_order_answer *a, FILE *to)
{
    const size_t n = (size_t)a->sums.nterms;
    struct numbers u = {.order = &a->order, .sums = json_array(), .number = malloc((n + 1) * sizeof *u.number)};
    json_t *j = u.number ? begin_json(a) : NULL;

    for (size_t i = 0; u.number && i < n; i++) u.number[i] = -1;
    if (j && !a->question.lint) {
        add_sums(&u, j);
        add_judgements(a, j);
    }
    json_object_set_new(j, "lints", lints_json(&a->order));
    json_decref(u.sums);
    free(u.number);
    return kl_output_answer(a->question.lint ? KL_SCHEMA_ORDER_LINT : KL_SCHEMA_ORDER, j, KL_OUTPUT_FORMAT, to);
}
