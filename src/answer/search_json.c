/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/search.h"

#include "graph/codes.h"
#include "plan/topo_name.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/reason_json.h"
#include "answer/schema.h"

/* ---- faults ---- */

static json_t *result_json(const struct kl_graph_result *r)
{
    return json_pack("{s:i,s:o,s:o}", "nchannels", r->nchannels, "bw_intra", kl_json_float(r->bw_intra), "bw_inter",
                     kl_json_float(r->bw_inter));
}

static json_t *fault_json(const struct kl_fault_cost *c)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:b,s:b}", "code", kl_anomaly_name(c->fault.code), "text", c->fault.text,
                          "remedy", kl_anomaly_remedy(c->fault.code), "tried", c->mended, "costs", c->costs);

    json_object_set_new(o, "together", json_boolean(c->together));
    if (!c->mended) return o;
    json_object_set_new(o, "hosts", json_integer(c->hosts));
    json_object_set_new(o, "graph", json_string(kl_graph_name(c->now.id)));
    json_object_set_new(o, "now", result_json(&c->now));
    json_object_set_new(o, "without", result_json(&c->without));
    return o;
}

/* ---- graph files ---- */

static json_t *graph_file_json(const struct kl_search_report *report)
{
    const char *file = report->planned.config.graph_file;
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    if (!kl_settings_find(&report->cluster->settings, "NCCL_GRAPH_FILE", &setting)) return json_null();
    return json_pack("{s:s,s:s}", "file", file, "origin", kl_setting_origin(&setting, origin));
}

/* What a search finds where a graph file was used. */
static json_t *searched_json(const struct kl_search_report *report, int id)
{
    const struct kl_plan *p = report->searched;

    if (!p) return json_null();
    struct kl_graph_result r = kl_graph_result_of(&p->domain[p->domain_of[0]].graphs, id);

    return result_json(&r);
}

/* ---- attempts ---- */

static json_t *node_name(const struct kl_topo *t, int node)
{
    char text[KL_NODE_TEXT];

    return json_string(kl_topo_name(t, node, text));
}

static json_t *link_json(const struct kl_topo *t, int link)
{
    if (link < 0) return json_null();
    return json_pack("{s:o,s:o,s:s,s:o}", "from", node_name(t, t->link[link].from), "to",
                     node_name(t, t->link[link].to), "type", kl_link_type_name[t->link[link].type], "bw",
                     kl_json_float(t->link[link].bw));
}

static json_t *types_json(struct kl_range r)
{
    return json_pack("[s,s]", kl_path_type_name[r.from], kl_path_type_name[r.to]);
}

static json_t *range_json(struct kl_range r)
{
    return json_pack("[i,i]", r.from, r.to);
}

static json_t *relaxation_json(int next)
{
    return next ? kl_json_reason(kl_relaxation_code(next), kl_relaxation_name(next)) : json_null();
}

static json_t *chapter_json(const struct kl_topo *t, const struct kl_search_log_entry *k)
{
    json_t *o = json_pack("{s:[i,i],s:i,s:[o,o],s:[o,o],s:o,s:o,s:o,s:o}", "attempts", k->first, k->last, "pass",
                          k->pass, "bw_intra", kl_json_float(k->bw_from), kl_json_float(k->bw_to), "bw_inter",
                          kl_json_float(k->inter_from), kl_json_float(k->inter_to), "type_intra",
                          types_json(k->type_intra), "type_inter", types_json(k->type_inter), "same_channels",
                          range_json(k->same_channels), "cross_nic", range_json(k->cross_nic));

    json_object_update_new(o, json_pack("{s:i,s:i,s:i,s:i,s:i,s:I,s:o,s:o}", "stored", k->stored, "made", k->made,
                                        "repeated", k->repeated, "hopeless", k->hopeless, "timeouts", k->timeouts,
                                        "steps", (json_int_t)k->steps, "limiting_link", link_json(t, k->limiting_link),
                                        "next", relaxation_json(k->next)));
    return o;
}

static json_t *attempt_json(const struct kl_topo *t, const struct kl_conn_request *a)
{
    json_t *o =
        json_pack("{s:i,s:s,s:o,s:o,s:s,s:s,s:i,s:i}", "pass", a->pass, "pattern", kl_graph_pattern_name(a->pattern),
                  "bw_intra", kl_json_float(a->bw_intra), "bw_inter", kl_json_float(a->bw_inter), "type_intra",
                  kl_path_type_name[a->type_intra], "type_inter", kl_path_type_name[a->type_inter], "same_channels",
                  a->same_channels, "cross_nic", a->cross_nic);

    json_object_update_new(o, json_pack("{s:i,s:i,s:i,s:s,s:o,s:o,s:i,s:o}", "budget", a->budget, "steps", a->steps,
                                        "stored", a->stored, "end", kl_attempt_end_code(a->end), "repeats",
                                        a->repeats < 0 ? json_null() : json_integer(a->repeats), "limiting_link",
                                        link_json(t, a->limiting_link), "refusals", a->refusals, "next",
                                        relaxation_json(a->next)));
    return o;
}

static json_t *chapters(const struct kl_topo *t, const struct kl_search_log *s)
{
    json_t *a = json_array();

    for (int i = 0; i < s->log_entries; i++) json_array_append_new(a, chapter_json(t, &s->entry[i]));
    return a;
}

static json_t *attempts(const struct kl_topo *t, const struct kl_graph_why *why)
{
    json_t *a = json_array();

    for (int i = 0; i < why->nattempts; i++) json_array_append_new(a, attempt_json(t, &why->attempt[i]));
    return a;
}

/* ---- loads ---- */

static json_t *load_json(json_t *o, float used, float more, float lacks)
{
    json_object_set_new(o, "used", kl_json_float(used));
    json_object_set_new(o, "one_more", kl_json_float(more));
    json_object_set_new(o, "lacks", kl_json_float(lacks));
    return o;
}

static json_t *links_json(const struct kl_topo *t, const struct kl_load *l)
{
    json_t *a = json_array();

    for (int i = 0; i < t->nlinks; i++)
        if (l->used[i] > 0 || l->more[i] > 0)
            json_array_append_new(a, load_json(link_json(t, i), l->used[i], l->more[i], kl_load_lacks(l, t, i)));
    return a;
}

static json_t *ports_json(const struct kl_topo *t, const struct kl_load *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nnets; i++) {
        int node = kl_topo_at(t, KL_NODE_NET, i);
        json_t *o = json_pack("{s:o,s:o}", "net", node_name(t, node), "bw", kl_json_float(t->node[node].net.bw));

        json_array_append_new(a, load_json(o, l->port_used[i], l->port_more[i], kl_load_port_lacks(l, t, i)));
    }
    return a;
}

/* ---- graphs ---- */

static json_t *graph_json(const struct kl_search_report *report, const struct kl_graph_report *g, bool all)
{
    const struct kl_topo *t = report->domain->topo;
    const struct kl_graph *a = g->graph;
    json_t *o = json_pack("{s:s,s:i,s:i,s:o,s:o,s:s,s:s,s:s,s:i,s:i}", "graph", kl_graph_name(g->id), "nchannels",
                          a->nchannels, "max_channels", a->max_channels, "bw_intra", kl_json_float(a->bw_intra),
                          "bw_inter", kl_json_float(a->bw_inter), "type_intra", kl_path_type_name[a->type_intra],
                          "type_inter", kl_path_type_name[a->type_inter], "pattern", kl_graph_pattern_name(a->pattern),
                          "same_channels", a->same_channels, "cross_nic", a->cross_nic);

    json_object_set_new(o, "end", kl_json_reason(kl_search_end_code(g->why->end), kl_search_end_name(g->why->end)));
    json_object_set_new(o, "graph_file_refused", g->why->refused ? json_string(g->why->refused) : json_null());
    json_object_set_new(o, "searched", searched_json(report, g->id));
    json_object_set_new(o, "found", json_integer(g->why->found));
    json_object_set_new(o, "doubling",
                        kl_json_reason(kl_doubling_code(g->why->doubling), kl_doubling_name(g->why->doubling)));
    json_object_set_new(o, "chapters", chapters(t, g->log));
    if (all) json_object_set_new(o, "attempts", attempts(t, g->why));
    json_object_set_new(o, "limit", json_string(kl_limit_name(g->load->limit)));
    json_object_set_new(o, "one_more_like", g->load->like < 0 ? json_null() : json_integer(g->load->like));
    json_object_set_new(o, "links", links_json(t, g->load));
    json_object_set_new(o, "ports", ports_json(t, g->load));
    return o;
}

static json_t *channels_json(const struct kl_connect *c)
{
    json_t *steps = json_array();

    for (int i = 0; i < c->nsteps; i++)
        json_array_append_new(steps, json_pack("{s:s,s:s,s:i,s:i}", "code", kl_channel_reason_name(c->step[i].reason),
                                               "text", kl_channel_reason_text(c->step[i].reason), "before",
                                               c->step[i].before, "after", c->step[i].after));
    return json_pack("{s:i,s:i,s:i,s:o}", "nchannels", c->nchannels, "coll_channels", c->coll_channels, "nvls_channels",
                     c->nvls_channels, "steps", steps);
}

ncclResult_t kl_search_json(const struct kl_search_report *report, bool all, FILE *to)
{
    char headline[KL_HEADLINE_TEXT];
    struct kl_text text = kl_text_in(headline, sizeof headline);
    const struct kl_plan *p = report->planned.plan;
    json_t *faults = json_array(), *graphs = json_array();

    kl_search_add_headline(report, &text);
    for (int i = 0; i < report->nfaults; i++) json_array_append_new(faults, fault_json(&report->fault[i]));
    for (int i = 0; i < report->ngraphs; i++) json_array_append_new(graphs, graph_json(report, &report->graph[i], all));
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:o}", "topology", report->cluster->name, "hosts", p->hosts,
                          "ranks_total", p->nranks, "nnodes", p->connect->nodes.nnodes, "verdict",
                          kl_json_reason(kl_search_headline_name(report->headline), headline), "faults", faults,
                          "graphs", graphs, "channels", channels_json(p->connect));

    json_object_set_new(o, "topology_origin", kl_origin_json(report->cluster));
    kl_assumed_add(report->cluster, o);
    json_object_set_new(o, "graph_file", graph_file_json(report));
    return kl_output_answer(KL_SCHEMA_SEARCH, o, KL_OUTPUT_FORMAT, to);
}
