/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "tools/kolo/graph_json.h"
#include "tools/kolo/output.h"

/* ---- facts ---- */

static const char *const kind_names[] = {
    [KL_FACT_SETTING] = "setting", [KL_FACT_LINK] = "link",           [KL_FACT_GPU] = "gpu",
    [KL_FACT_NET] = "net",         [KL_FACT_ATTRIBUTE] = "attribute", [KL_FACT_MACHINE] = "machine"};

static const char *const verdict_names[] = {[KL_VERDICT_UNTRIED] = "not_tried",
                                            [KL_VERDICT_ALL] = "all",
                                            [KL_VERDICT_PART] = "part",
                                            [KL_VERDICT_NOTHING] = "nothing"};

static json_t *fact_of(const struct kl_fact *f, bool in_cause)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:s}", "code", kind_names[f->kind], "text", f->text,
                     "subject", f->subject, "what", f->what, "a", f->a, "b", f->b, "count", f->nmerged, "cause",
                     (int)in_cause, "alone_explains", verdict_names[f->verdict]);
}

static json_t *facts_of(const struct kl_diff *d)
{
    json_t *list = json_array();

    for (int i = 0; i < d->facts.nfacts; i++) json_array_append_new(list, fact_of(&d->facts.fact[i], d->in_cause[i]));
    return list;
}

/* ---- rows ---- */

static json_t *value_of(const struct kl_row_kind *k, const struct kl_diff_value *v)
{
    json_t *text = *v->text ? json_string(v->text) : json_null();
    json_t *number = v->has_number ? kl_json_float(v->number) : json_null();

    if (v->timeless) return json_pack("{s:o, s:o, s:b}", k->text_key, text, k->number_key, number, "timeless_hops", 1);
    if (k->text_key) return json_pack("{s:o, s:o}", k->text_key, text, k->number_key, number);
    if (v->has_number) {
        json_decref(text);
        return number;
    }
    json_decref(number);
    return text;
}

static json_t *row_of(const struct kl_diff_row *r)
{
    const struct kl_row_kind *k = &kl_row_kinds[r->what];

    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "stage", kl_stage_name[k->stage], "what", k->name, "subject",
                     r->subject, "a", value_of(k, &r->a), "b", value_of(k, &r->b));
}

/* In the order of the chain, whatever order they were gathered in. */
static json_t *rows_of(const struct kl_diff_rows *rows)
{
    json_t *list = json_array();

    for (int w = 0; w < KL_ROW_WHATS; w++)
        for (int i = 0; i < rows->nrows; i++)
            if (rows->row[i].what == w) json_array_append_new(list, row_of(&rows->row[i]));
    return list;
}

static json_t *totals_of(const struct kl_diff_rows *rows)
{
    json_t *o = json_object();

    for (int w = 0; w < KL_ROW_WHATS; w++)
        json_object_set_new(o, kl_row_kinds[w].name,
                            json_pack("{s:I, s:I}", "compared", (json_int_t)rows->compared[w], "changed",
                                      (json_int_t)rows->changed[w]));
    return o;
}

/* ---- sides ---- */

static json_t *texts_of(const struct kl_edit_list *list)
{
    json_t *texts = json_array();

    for (int i = 0; i < list->n; i++) json_array_append_new(texts, json_string(list->text[i]));
    return texts;
}

static json_t *graphs_of(const struct kl_diff_side *side)
{
    const struct kl_plan *p = side->planned.plan;
    const struct kl_graphs *graphs = &p->domain[p->domain_of[0]].graphs;
    json_t *o = json_object();

    for (int g = 0; g < KL_GRAPHS; g++) {
        const struct kl_graph *x = graphs->graph[g];

        json_object_set_new(o, kl_graph_name(g),
                            x ? json_pack("{s:i, s:o, s:o, s:s, s:s}", "channels", x->nchannels, "bw_intra",
                                          kl_json_float(x->bw_intra), "bw_inter", kl_json_float(x->bw_inter),
                                          "type_intra", kl_path_type_name[x->type_intra], "type_inter",
                                          kl_path_type_name[x->type_inter])
                              : json_null());
    }
    return o;
}

static json_t *side_of(const struct kl_diff_side *side)
{
    const struct kl_plan *p = side->planned.plan;
    const struct kl_edits *edit = &side->args->edits;

    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "topology", side->cluster.name, "hosts",
                     side->cluster.hosts, "gpus_per_host", side->cluster.gpus, "ranks_total", p->nranks, "nchannels",
                     p->connect->nchannels, "with", texts_of(&edit->with), "without", texts_of(&edit->without),
                     "without_link", texts_of(&edit->without_link), "graphs", graphs_of(side));
}

static json_t *cause_of(const struct kl_diff *d)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "code", d->nothing_changes ? "nothing_changes" : "changes", "text",
                     d->cause, d->nothing_changes ? "why" : "effect", d->nothing_changes ? d->why : d->effect,
                     "verified", (int)d->verified);
}

ncclResult_t kl_diff_json(const struct kl_diff *d, FILE *to)
{
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "cause", cause_of(d), "differences", facts_of(d), "changes",
                          rows_of(&d->rows), "totals", totals_of(&d->rows), "a", side_of(&d->a), "b", side_of(&d->b));

    return kl_output_json(o, to);
}
