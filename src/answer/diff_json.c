/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/diff.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/schema.h"

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

    json_t *o = json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "topology", side->cluster.name,
                          "topology_origin", kl_origin_json(&side->cluster), "hosts", side->cluster.hosts,
                          "gpus_per_host", side->cluster.gpus, "ranks_total", p->nranks, "nchannels",
                          p->connect->nchannels, "with", texts_of(&edit->with), "without", texts_of(&edit->without),
                          "without_link", texts_of(&edit->without_link), "graphs", graphs_of(side));

    kl_assumed_add(&side->cluster, o);
    return o;
}

/* Names are those of A: what its GPUs are called in B. */
static json_t *ranks_in_b(const struct kl_diff *d)
{
    json_t *ranks = json_array();

    for (int r = 0; r < d->a.planned.plan->ranks_per_host; r++)
        json_array_append_new(ranks, d->a.to_b[r] < 0 ? json_null() : json_integer(d->a.to_b[r]));
    return ranks;
}

/* ---- cause and effect ---- */

static const char *const effect_codes[] = {
    [KL_DIFF_ANSWER] = "rule",
    [KL_DIFF_LOST] = "graph_lost",
    [KL_DIFF_GONE] = "graph_gone",
    [KL_DIFF_APPEARED] = "graph_new",
    [KL_DIFF_NUMBERS] = "graph_numbers",
    [KL_DIFF_PATHS] = "graph_paths",
    [KL_DIFF_KEPT] = "graphs_kept",
    [KL_DIFF_REORDERED] = "graphs_reordered",
    [KL_DIFF_COUNT] = "count",
    [KL_DIFF_TIME] = "time",
    [KL_DIFF_GRAPH_NUMBER] = "graph_number",
    [KL_DIFF_UNCHANGED] = "unchanged",
};

static const char *const why_codes[] = {
    [KL_SAME_MEANINGLESS] = "meaningless",    [KL_SAME_INPUT] = "same_input",
    [KL_SAME_RELEASES] = "same_for_releases", [KL_SAME_SEVERAL] = "several_unused",
    [KL_SAME_OTHER_NAME] = "not_for_plans",   [KL_SAME_NO_PARAMETER] = "no_parameter",
    [KL_SAME_VALUE] = "same_value",           [KL_SAME_NO_RULE] = "no_rule",
    [KL_SAME_LINK_LEFT] = "link_left",        [KL_SAME_LINK_UNUSED] = "link_unused",
    [KL_SAME_NO_NETWORK] = "no_network",      [KL_SAME_UNUSED] = "unused",
};

static bool is_of_graph(enum kl_diff_effect_kind kind)
{
    return kind == KL_DIFF_LOST || kind == KL_DIFF_GONE || kind == KL_DIFF_APPEARED || kind == KL_DIFF_NUMBERS ||
           kind == KL_DIFF_PATHS;
}

static json_t *effect_of(const struct kl_diff_effect *e)
{
    json_t *o = json_pack("{s:s}", "code", effect_codes[e->kind]);

    if (e->row) json_object_update_new(o, row_of(e->row));
    if (e->kind == KL_DIFF_ANSWER) json_object_set_new(o, "alike", json_integer(e->nalike));
    if (e->reach != KL_REACH_SAME)
        json_object_set_new(o, "p2p_reach",
                            json_pack("{s:s, s:s, s:b}", "a", kl_path_type_name[e->level_a], "b",
                                      kl_path_type_name[e->level_b], "off", e->reach == KL_REACH_OFF));
    if (is_of_graph(e->kind)) json_object_set_new(o, "graph", json_string(kl_graph_name(e->graph)));
    return o;
}

static json_t *effects_of(const struct kl_diff *d)
{
    json_t *list = json_array();

    for (int i = 0; i < d->neffects; i++) json_array_append_new(list, effect_of(&d->effect[i]));
    return list;
}

static json_t *cause_of(const struct kl_diff *d)
{
    char cause[KL_CAUSE_TEXT], effect[KL_CAUSE_TEXT], why[KL_WHY_NOT_TEXT];

    kl_diff_cause_text(d, cause);
    if (d->nothing_changes) {
        kl_diff_why_text(d, why);
        return json_pack("{s:s, s:s, s:s, s:s, s:b}", "code", "nothing_changes", "text", cause, "why", why, "why_code",
                         why_codes[d->why], "verified", (int)d->verified);
    }
    kl_diff_effect_text(d, effect);
    return json_pack("{s:s, s:s, s:s, s:o, s:b}", "code", "changes", "text", cause, "effect", effect, "effects",
                     effects_of(d), "verified", (int)d->verified);
}

/* Of the releases that the sides follow. */
static json_t *release_changes(const struct kl_diff *d)
{
    json_t *all = json_array();

    for (int i = 0; i < d->nchanges; i++) {
        const struct kl_diff_change *c = &d->change[i];
        const struct kl_change_facts *f = kl_change_facts(c->change);
        char since[KL_NCCL_TEXT];
        json_t *matters = d->changes_tried ? json_boolean(kl_diff_change_matters(c)) : json_null();

        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o, s:s}", "code", f->name, "since",
                                             kl_nccl_text(f->since, since), "text", f->text, "cause", matters,
                                             "alone_explains", effect_names[c->alone]));
    }
    return all;
}

ncclResult_t kl_diff_json(const struct kl_diff *d, FILE *to)
{
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "cause", cause_of(d), "differences", facts_of(d), "changes",
                          rows_of(&d->rows), "totals", totals_of(&d->rows), "a", side_of(&d->a), "b", side_of(&d->b));

    json_object_set_new(o, "ranks_in_b", ranks_in_b(d));
    json_object_set_new(o, "release_changes", release_changes(d));
    return kl_output_answer(KL_SCHEMA_DIFF, o, KL_OUTPUT_FORMAT, to);
}
