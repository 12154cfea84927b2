/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/plan_json.h"

#include "base/error.h"
#include "graph/codes.h"
#include "graph/expected.h"
#include "graph/nic.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/schema.h"
#include "topo/paths.h"

#include <stdlib.h>

/* The object under way. */
struct writer {
    FILE *to;
    int keys;
    int failed;
};

/* Write one member and let go of its value. */
static void member(struct writer *w, const char *key, json_t *value)
{
    w->failed |= !value;
    if (!w->failed) {
        fprintf(w->to, "%s\"%s\": ", w->keys++ ? ",\n " : "", key);
        w->failed |= json_dumpf(value, w->to, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) != 0;
    }
    json_decref(value);
}

static void member_int(struct writer *w, const char *key, int value)
{
    member(w, key, json_integer(value));
}

static json_t *int_array(const int32_t *value, int n)
{
    json_t *a = json_array();

    for (int i = 0; i < n; i++) json_array_append_new(a, json_integer(value[i]));
    return a;
}

/* ---- graphs ---- */

static json_t *orders(const struct kl_graph *g)
{
    json_t *a = json_array();

    for (int c = 0; c < g->nchannels; c++) json_array_append_new(a, int_array(g->intra + c * g->ngpus, g->ngpus));
    return a;
}

static json_t *nets(const struct kl_graph *g, bool has_nets)
{
    json_t *a = json_array();

    for (int c = 0; has_nets && c < g->nchannels; c++)
        json_array_append_new(a, json_pack("[I,I]", (json_int_t)g->inter[2 * c], (json_int_t)g->inter[2 * c + 1]));
    return a;
}

static json_t *facts_json(const struct kl_graph_facts *f)
{
    return json_pack("{s:i,s:i,s:i,s:o,s:o,s:o,s:s,s:s,s:i}", "pattern", f->pattern, "crossNic", f->cross_nic,
                     "nChannels", f->nchannels, "bwIntra", kl_json_float(f->bw_intra), "bwInter",
                     kl_json_float(f->bw_inter), "latencyInter", kl_json_float(f->latency_inter), "typeIntra",
                     kl_path_type_name[f->type_intra], "typeInter", kl_path_type_name[f->type_inter], "sameChannels",
                     f->same_channels);
}

static json_t *graph_json(const struct kl_graph *g, bool has_nets)
{
    struct kl_graph_facts f;
    json_t *o;

    if (!g) return json_null();
    f = (struct kl_graph_facts){g->pattern,    g->nchannels, g->same_channels, g->cross_nic,    g->type_intra,
                                g->type_inter, g->bw_intra,  g->bw_inter,      g->latency_inter};
    o = facts_json(&f);
    json_object_set_new(o, "nHops", json_integer(g->nhops));
    json_object_set_new(o, "minChannels", json_integer(g->min_channels));
    json_object_set_new(o, "maxChannels", json_integer(g->max_channels));
    json_object_set_new(o, "intra", orders(g));
    json_object_set_new(o, "inter", nets(g, has_nets));
    return o;
}

static void write_graphs(struct writer *w, const struct kl_plan *p, unsigned shown)
{
    const struct kl_graphs *graphs = &p->domain[p->domain_of[0]].graphs;
    json_t *all = json_object(), *aligned = json_object();

    for (int i = 0; i < KL_GRAPHS; i++) {
        int id = kl_graph_order[i];
        const struct kl_graph *g = graphs->graph[id];

        if (!(shown >> id & 1)) continue;
        json_object_set_new(all, kl_graph_name(id), graph_json(g, graphs->has_nets));
        json_object_set_new(aligned, kl_graph_name(id),
                            g && g->nchannels ? facts_json(&p->connect->graph[id]) : json_null());
    }
    member(w, "graphs", all);
    member(w, "graphs_aligned", aligned);
}

/* ---- rings and trees ---- */

static void write_counts(struct writer *w, const struct kl_plan *p)
{
    const struct kl_connect *c = p->connect;

    member_int(w, "nchannels", c->nchannels);
    member_int(w, "coll_channels", c->coll_channels);
    member_int(w, "nvls_channels", c->nvls_channels);
    member_int(w, "p2p_channels", p->p2p.n);
    member_int(w, "p2p_channels_per_peer", p->p2p.per_peer);
    member_int(w, "nvls_support", c->nvls);
    member_int(w, "collnet_support", c->collnet);
    member_int(w, "is_all_nvlink", kl_topo_all_nvlink(p->domain[p->domain_of[0]].topo));
    member_int(w, "max_local_ranks", c->nodes.max_local);
}

/* A member that is an array with one element per channel, written one by one. */
static void channels(struct writer *w, const char *key, const struct kl_plan *p,
                     json_t *(*make)(const struct kl_plan *p, int channel))
{
    fprintf(w->to, "%s\"%s\": [", w->keys++ ? ",\n " : "", key);
    for (int c = 0; c < p->connect->nchannels && !w->failed; c++) {
        json_t *value = make(p, c);

        w->failed |= !value;
        if (c) fputs(",\n  ", w->to);
        if (value) w->failed |= json_dumpf(value, w->to, JSON_ENCODE_ANY) != 0;
        json_decref(value);
    }
    fputs("]", w->to);
}

static json_t *ring_json(const struct kl_plan *p, int channel)
{
    int32_t *order = malloc((size_t)p->nranks * sizeof *order);
    json_t *a = NULL;

    if (order && !kl_connect_ring_order(p->connect, channel, 0, order)) a = int_array(order, p->nranks);
    free(order);
    return a;
}

static json_t *tree_json(const struct kl_plan *p, int channel)
{
    json_t *a = json_array();

    for (int r = 0; r < p->nranks; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(p->connect, channel, r);

        json_array_append_new(
            a, json_pack("{s:i,s:i,s:[i,i,i]}", "rank", r, "up", t.up, "down", t.down[0], t.down[1], t.down[2]));
    }
    return a;
}

static json_t *nvls_channel(const struct kl_plan *p, int channel, int rank)
{
    struct kl_nvls_links l = kl_connect_nvls(p->connect, channel, rank);

    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:[i,i,i]}", "nHeads", l.nheads, "headRank", l.head, "down", l.down, "out",
                     l.out, "treeUp", l.tree_up, "treeDown", l.tree_down[0], l.tree_down[1], l.tree_down[2]);
}

static json_t *nvls_json(const struct kl_plan *p)
{
    json_t *a = json_array();

    for (int r = 0; r < p->nranks; r++)
        json_array_append_new(
            a, json_pack("{s:i,s:o,s:o}", "rank", r, "ch0", nvls_channel(p, 0, r), "ch1", nvls_channel(p, 1, r)));
    return a;
}

static json_t *collnet_json(const struct kl_plan *p)
{
    json_t *a = json_array();

    for (int r = 0; r < p->nranks; r++) {
        struct kl_collnet_links l = kl_connect_collnet(p->connect, 0, r);

        if (!l.nheads && l.chain_up < 0 && l.chain_down < 0) continue;
        json_array_append_new(a, json_pack("{s:i,s:i,s:i,s:{s:i,s:i,s:i,s:i,s:i,s:o,s:o,s:o}}", "rank", r, "chain_up",
                                           l.chain_up, "chain_down", l.chain_down, "direct", "nHeads", l.nheads,
                                           "headRank", l.head, "shift", l.shift, "depth", l.depth, "out", l.out, "up",
                                           int_array(l.up, l.nup), "down", int_array(l.down, l.ndown), "heads",
                                           int_array(l.heads, l.nheads)));
    }
    return a;
}

/* ---- tuning ---- */

static json_t *model_json(const struct kl_tuning *t)
{
    json_t *model = json_object();

    for (int f = 0; f < KL_FUNCS; f++) {
        json_t *algos = json_object();

        for (int a = 0; a < t->constants->algos; a++) {
            json_t *protos = json_object();

            for (int k = 0; k < KL_PROTOS; k++)
                json_object_set_new(protos, kl_proto_name[k],
                                    json_pack("{s:o,s:o}", "lat", kl_json_float(t->latency[f][a][k]), "bw",
                                              kl_json_float(t->bandwidth[f][a][k])));
            json_object_set_new(algos, kl_algo_name[a], protos);
        }
        json_object_set_new(model, kl_func_name[f], algos);
    }
    return model;
}

static json_t *limits_json(const struct kl_tuning *t, bool thresholds)
{
    json_t *o = json_object();

    for (int a = 0; a < t->constants->algos; a++) {
        json_t *row = json_array();

        for (int k = 0; k < KL_PROTOS; k++)
            json_array_append_new(row, json_integer(thresholds ? t->threshold[a][k] : t->max_threads[a][k]));
        json_object_set_new(o, kl_algo_name[a], row);
    }
    return o;
}

static json_t *expected_json(const struct kl_tuning *t, const struct kl_tuning_op *op, const struct kl_tuning_choice *c)
{
    const struct kl_expected e = t->in.nranks > 1 ? kl_expected_of(t, op, c->algo, c->proto) : (struct kl_expected){0};

    return e.time > 0 ? kl_json_float(e.time) : json_null();
}

/* Sizes 8 B to 1 GiB, of one sum of floats. */
static json_t *choices_json(const struct kl_tuning *t, int func)
{
    json_t *a = json_array();
    int quiet = kl_error_quiet(1); /* "nothing can do it" is an answer here */

    for (int i = 3; i <= 30; i++) {
        struct kl_tuning_op op = kl_tuning_op_of(func, (int64_t)1 << i, ncclFloat32, ncclSum);
        struct kl_tuning_choice c;

        if (kl_tuning_choose(t, &op, &c, NULL))
            json_array_append_new(a, json_pack("{s:I,s:n,s:n}", "bytes", (json_int_t)op.bytes, "algo", "proto"));
        else
            json_array_append_new(a, json_pack("{s:I,s:s,s:s,s:i,s:i,s:o,s:o}", "bytes", (json_int_t)op.bytes, "algo",
                                               kl_algo_name[c.algo], "proto", kl_proto_name[c.proto], "nchannels",
                                               c.nchannels, "nthreads", c.nthreads, "time_us", kl_json_float(c.time),
                                               "expected_us", expected_json(t, &op, &c)));
    }
    kl_error_quiet(quiet);
    return a;
}

static void write_tuning(struct writer *w, const struct kl_tuning *t)
{
    json_t *select = json_object();

    for (int f = 0; f < KL_FUNCS; f++) json_object_set_new(select, kl_func_name[f], choices_json(t, f));
    member(w, "tuning",
           json_pack("{s:o,s:o,s:o,s:o}", "model", model_json(t), "max_threads", limits_json(t, false),
                     "thread_thresholds", limits_json(t, true), "select", select));
}

/* ---- why ---- */

static json_t *attempt_json(const struct kl_topo *t, const struct kl_conn_request *a)
{
    static const char *const ends[] = {"perfect", "exhausted", "step limit reached", "pruned"};
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    json_t *o = json_pack("{s:i,s:s,s:o,s:o,s:s,s:s,s:i,s:b,s:i,s:i,s:i,s:s,s:s}", "pass", a->pass, "pattern",
                          kl_graph_pattern_name(a->pattern), "bwIntra", kl_json_float(a->bw_intra), "bwInter",
                          kl_json_float(a->bw_inter), "typeIntra", kl_path_type_name[a->type_intra], "typeInter",
                          kl_path_type_name[a->type_inter], "crossNic", a->cross_nic, "sameChannels", a->same_channels,
                          "budget", a->budget, "steps", a->steps, "stored", a->stored, "end", ends[a->end], "next",
                          kl_relaxation_name(a->next));

    if (a->repeats >= 0) json_object_set_new(o, "repeats", json_integer(a->repeats));
    if (a->limiting_link >= 0) {
        const struct kl_link *l = &t->link[a->limiting_link];

        json_object_set_new(o, "limitedBy",
                            json_pack("{s:s,s:s,s:s,s:o,s:i}", "from", kl_node_text(&t->node[l->from], from), "to",
                                      kl_node_text(&t->node[l->to], to), "type", kl_link_type_name[l->type], "bw",
                                      kl_json_float(l->bw), "refusals", a->refusals));
    }
    return o;
}

static json_t *why_json(const struct kl_topo *t, const struct kl_graph_why *why)
{
    json_t *attempts = json_array();

    for (int i = 0; i < why->nattempts; i++) json_array_append_new(attempts, attempt_json(t, &why->attempt[i]));
    return json_pack("{s:s,s:s,s:o,s:o}", "end", kl_search_end_name(why->end), "end_code", kl_search_end_code(why->end),
                     "refused", why->refused ? json_string(why->refused) : json_null(), "attempts", attempts);
}

static void write_why(struct writer *w, const struct kl_plan *p, unsigned shown)
{
    const struct kl_plan_domain *d = &p->domain[p->domain_of[0]];
    json_t *by_graph = json_object(), *explain = json_object();

    for (int i = 0; i < KL_GRAPHS; i++) {
        const struct kl_graph_why *why = d->graphs.why[kl_graph_order[i]];

        if (!why || !(shown >> kl_graph_order[i] & 1)) continue;
        json_object_set_new(by_graph, kl_graph_name(kl_graph_order[i]), json_real((double)why->cpu_ns / 1e6));
        json_object_set_new(explain, kl_graph_name(kl_graph_order[i]), why_json(d->topo, why));
    }
    member(w, "search_cpu_ms_by_graph", by_graph);
    member(w, "search_cpu_ms", json_real((double)d->graphs.cpu_ns / 1e6));
    member(w, "explain", explain);
}

/* ---- the NICs of the ring ---- */

static json_t *ring_end(const struct kl_plan_domain *d, int nchannels, int channel, bool recv)
{
    const struct kl_graph *ring = d->graphs.graph[KL_GRAPH_RING];
    const int32_t *order = ring->intra + channel % nchannels * ring->ngpus;
    int rank = order[recv ? 0 : ring->ngpus - 1], quiet = kl_error_quiet(1);
    struct kl_graph_nic nic;
    ncclResult_t rc = kl_graph_nic(d->topo, ring, nchannels, channel, rank, &nic);

    kl_error_quiet(quiet);
    if (rc) return json_pack("[i,i,i]", rank, -1, -1);
    return json_pack("[i,i,i]", rank, d->topo->node[kl_topo_at(d->topo, KL_NODE_NET, nic.net)].net.dev, nic.proxy);
}

/* Between hosts: channels, the ranks that receive and send there, their NETs and proxies. */
static json_t *ring_nets(const struct kl_plan *p)
{
    const struct kl_plan_domain *d = &p->domain[p->domain_of[0]];
    int base = p->connect->graph[KL_GRAPH_RING].nchannels;
    json_t *a = json_array();

    for (int c = 0; d->graphs.has_nets && p->hosts > 1 && c < p->connect->nchannels; c++)
        json_array_append_new(a, json_pack("{s:i,s:o,s:o}", "ch", c, "recv", ring_end(d, base, c, true), "send",
                                           ring_end(d, base, c, false)));
    return a;
}

/* ---- all of it ---- */

static void write_topology(struct writer *w, const struct kl_plan_view *v)
{
    const struct kl_topo *t = v->plan->domain[v->plan->domain_of[0]].topo;
    json_t *queries = kl_json_queries(t, v->cluster);

    w->failed |= !queries || json_object_set_new(queries, "ring_net", ring_nets(v->plan));
    member(w, "system", kl_json_system(t));
    member(w, "max_bw", kl_json_float(t->max_bw));
    member(w, "total_bw", kl_json_float(t->total_bw));
    member(w, "paths", kl_json_paths(t));
    member(w, "queries", queries);
}

static void write_head(struct writer *w, const struct kl_plan_view *v)
{
    member(w, "schema", json_string(KL_SCHEMA_GRAPH));
    member(w, "topology", json_string(v->cluster->name));
    member_int(w, "hosts", v->cluster->hosts);
    member_int(w, "gpus_per_host", v->cluster->gpus);
    member_int(w, "ranks_total", v->plan->nranks);
    char nccl[KL_NCCL_TEXT];

    member(w, "nccl", json_string(kl_nccl_text(v->cluster->options.nccl, nccl)));
    member(w, "assumed", kl_assumed_json(v->cluster));
    member(w, "uncertain", kl_uncertain_json(v->cluster));
    member(w, "finding", kl_finding_json(v->cluster));
    member(w, "constants", json_string(v->cluster->constants->name));
    member_int(w, "nnodes", v->plan->connect->nodes.nnodes);
    member(w, "rank_to_node", int_array(v->plan->connect->nodes.of_rank, v->plan->nranks));
}

ncclResult_t kl_plan_json(const struct kl_plan_view *v, json_t *warnings, FILE *to)
{
    const struct kl_plan *p = v->plan;
    struct writer w = {.to = to};

    fputs("{", to);
    write_head(&w, v);
    write_topology(&w, v);
    write_graphs(&w, p, v->graphs);
    write_counts(&w, p);
    channels(&w, "rings", p, ring_json);
    channels(&w, "trees", p, tree_json);
    member_int(&w, "tree_depth", kl_connect_tree_depth(p->connect));
    if (p->connect->nvls && p->connect->nheads) member(&w, "nvls_conn", nvls_json(p));
    if (p->connect->collnet) member(&w, "collnet_conn", collnet_json(p));
    write_tuning(&w, &p->tuning);
    write_why(&w, p, v->graphs);
    member(&w, "search_ms", json_real(v->search_ms));
    if (v->tuner) member(&w, "tuner", json_incref(v->tuner));
    member(&w, "warnings", warnings);
    fputs("}\n", to);
    KL_TRY(kl_output_end(to));
    if (w.failed) return KL_FAIL(ncclSystemError, "out of memory, or no answer, for the JSON of a plan");
    return ncclSuccess;
}
