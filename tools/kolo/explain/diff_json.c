/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff_print.h"
#include "tools/kolo/graph_json.h"
#include "tools/kolo/output.h"

/* ---- facts ---- */

static const char *const kind_names[KL_FACT_KINDS] = {
    [KL_FACT_SETTING] = "setting", [KL_FACT_LINK] = "link",           [KL_FACT_GPU] = "gpu",
    [KL_FACT_NET] = "net",         [KL_FACT_ATTRIBUTE] = "attribute", [KL_FACT_MACHINE] = "machine"};

static const char *const effect_names[KL_FACT_EFFECTS] = {[KL_EFFECT_UNTRIED] = "not_tried",
                                                          [KL_EFFECT_ALL] = "all",
                                                          [KL_EFFECT_PART] = "part",
                                                          [KL_EFFECT_NOTHING] = "nothing"};

static json_t *fact_of(const struct kl_diff *d, int fact)
{
    const struct kl_fact *f = &d->facts.fact[fact];
    struct kl_fact_words w;

    kl_fact_describe(d, f, &w);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:s}", "code", kind_names[f->kind], "text", w.text,
                     "subject", w.subject, "what", w.what, "a", w.a, "b", w.b, "count", f->nmerged, "cause",
                     (int)d->in_cause[fact], "alone_explains", effect_names[f->alone]);
}

static json_t *facts_of(const struct kl_diff *d)
{
    json_t *list = json_array();

    for (int i = 0; i < d->facts.nfacts; i++) json_array_append_new(list, fact_of(d, i));
    return list;
}

/* ---- rows ---- */

static const char *const stage_names[KL_STAGES] = {
    [KL_STAGE_RULES] = "rules", [KL_STAGE_PATHS] = "paths",       [KL_STAGE_GRAPHS] = "graphs",
    [KL_STAGE_NICS] = "NICs",   [KL_STAGE_CHANNELS] = "channels", [KL_STAGE_TUNING] = "tuning"};

static json_t *value_of(const struct kl_diff_row *r, const union kl_diff_value *value)
{
    const struct kl_row_kind *k = &kl_row_kinds[r->what];
    struct kl_value_words words, *v = &words;

    kl_value_describe(r, value, v);
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
    char subject[KL_SUBJECT_TEXT];

    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "stage", stage_names[kl_row_stage(r->what)], "what",
                     kl_row_kinds[r->what].name, "subject", kl_row_subject(r, subject), "a", value_of(r, &r->a), "b",
                     value_of(r, &r->b));
}

/* In the order of the chain, whatever order they were gathered in. */
static json_t *rows_of(const struct kl_diff_rows *rows)
{
    json_t *list = json_array();

    for (int w = 0; w < KL_ROW_WHATS; w++)
        for (int i = 0; i < rows->nrows; i++)
            if ((int)rows->row[i].what == w) json_array_append_new(list, row_of(&rows->row[i]));
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
    json_t *o = json_object();

    for (int g = 0; g < KL_GRAPHS; g++) {
        const struct kl_graph *x = kl_diff_graph(side, g);

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
    const struct kl_edits *edit = &side->request->edits;

    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "topology", side->cluster.name, "hosts",
                     side->cluster.hosts, "gpus_per_host", side->cluster.gpus, "ranks_total", p->nranks, "nchannels",
                     p->connect->nchannels, "with", texts_of(&edit->with), "without", texts_of(&edit->without),
                     "without_link", texts_of(&edit->without_link), "graphs", graphs_of(side));
}

static json_t *cause_of(const struct kl_diff *d)
{
    char cause[KL_CAUSE_TEXT], effect[KL_CAUSE_TEXT], why[KL_WHY_NOT_TEXT];

    kl_diff_cause_text(d, cause);
    if (d->nothing_changes)
        kl_diff_why_text(d, why);
    else
        kl_diff_effect_text(d, effect);
    return json_pack("{s:s, s:s, s:s, s:b}", "code", d->nothing_changes ? "nothing_changes" : "changes", "text", cause,
                     d->nothing_changes ? "why" : "effect", d->nothing_changes ? why : effect, "verified",
                     (int)d->verified);
}

ncclResult_t kl_diff_json(const struct kl_diff *d, FILE *to)
{
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "cause", cause_of(d), "differences", facts_of(d), "changes",
                          rows_of(&d->rows), "totals", totals_of(&d->rows), "a", side_of(&d->a), "b", side_of(&d->b));

    return kl_output_json(o, to);
}
