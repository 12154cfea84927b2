/* SPDX-License-Identifier: Apache-2.0 */
/* The questions: check the arguments, ask src/answer/, and write the answer into memory. */
#include "answer/bench.h"
#include "answer/coll.h"
#include "answer/diff.h"
#include "answer/estimate.h"
#include "answer/graph.h"
#include "answer/graph_name.h"
#include "answer/log.h"
#include "answer/machines.h"
#include "answer/nics.h"
#include "answer/order.h"
#include "answer/pair.h"
#include "answer/record.h"
#include "answer/search.h"
#include "answer/topo.h"
#include "answer/topo_path_json.h"
#include "answer/traffic.h"
#include "api/param_sets.h"
#include "base/error.h"
#include "koloplan/handle.h"
#include "koloplan/stream.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of all questions. */
struct question {
    const char *function; /* for messages */
    const char *a, *b;    /* nodes */
    const char *graph, *collective, *type, *op;
    int64_t first, last;
    const int64_t *bytes;
    const struct kl_named_text *text;
    int n; /* of bytes or texts */
    bool all;
    struct kl_order_question order;
    int root, npods;
    const int64_t *pod;
    const struct kl_cluster_request *request, *other; /* questions that open clusters themselves */
};

typedef ncclResult_t answerer(const struct question *q, struct kl_opened *o, FILE *to);

static ncclResult_t need(const void *argument, const char *function, const char *name)
{
    return argument ? ncclSuccess : KL_FAIL(ncclInvalidArgument, "%s: %s is NULL", function, name);
}

/* Answer into memory; `cluster` is locked meanwhile, if it is not NULL. */
static ncclResult_t ask(const struct question *q, struct koloplanCluster *cluster, answerer *answer, char **json)
{
    struct kl_answer_stream stream;

    KL_TRY(kl_answer_stream_open(&stream));
    if (cluster) pthread_mutex_lock(&cluster->mutex);
    ncclResult_t rc = answer(q, cluster ? &cluster->opened : NULL, stream.to);

    if (cluster) pthread_mutex_unlock(&cluster->mutex);
    return kl_answer_stream_close(&stream, rc, json);
}

/* A question about a cluster. */
static ncclResult_t ask_cluster(struct question *q, struct koloplanCluster *cluster, answerer *answer, char **json)
{
    KL_TRY(need(json, q->function, "json"));
    *json = NULL;
    KL_TRY(need(cluster, q->function, "cluster"));
    q->request = &cluster->request;
    return ask(q, cluster, answer, json);
}

/* ---- machines ---- */

static ncclResult_t answer_machines(const struct question *q, struct kl_opened *o, FILE *to)
{
    (void)q, (void)o;
    return kl_machines_json(to);
}

ncclResult_t koloplanMachines(char **json)
{
    const struct question q = {.function = "koloplanMachines"};

    KL_TRY(need(json, q.function, "json"));
    *json = NULL;
    return ask(&q, NULL, answer_machines, json);
}

static ncclResult_t answer_topo(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_topo_answer a;
    ncclResult_t rc = kl_topo_answer_make(o, q->request->hosts > 0, &a);

    if (!rc) rc = kl_topo_json(&a, to);
    kl_topo_answer_fini(&a);
    return rc;
}

ncclResult_t koloplanTopo(koloplanCluster_t cluster, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanTopo"}, cluster, answer_topo, json);
}

static ncclResult_t write_path(const struct question *q, const struct kl_topo_answer *a, FILE *to)
{
    int from = 0, end = 0;

    KL_TRY(kl_topo_end(a, q->a, &from));
    KL_TRY(kl_topo_end(a, q->b, &end));
    return kl_topo_path_json(a->topo, from, end, to);
}

static ncclResult_t answer_path(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_topo_answer a;

    KL_TRY(need(q->a, q->function, "from"));
    KL_TRY(need(q->b, q->function, "to"));
    ncclResult_t rc = kl_topo_answer_make(o, q->request->hosts > 0, &a);

    if (!rc) rc = write_path(q, &a, to);
    kl_topo_answer_fini(&a);
    return rc;
}

ncclResult_t koloplanPath(koloplanCluster_t cluster, const char *from, const char *to, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanPath", .a = from, .b = to}, cluster, answer_path, json);
}

/* ---- the plan ---- */

static ncclResult_t answer_graph(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_plan_view view;
    unsigned graphs;

    KL_TRY(kl_graphs_read(q->graph, &graphs));
    KL_TRY(kl_graph_answer_make(o, graphs, &view));
    return kl_graph_json(&view, to);
}

ncclResult_t koloplanGraph(koloplanCluster_t cluster, const char *graph, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanGraph", .graph = graph}, cluster, answer_graph, json);
}

static ncclResult_t answer_search(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_search_report report;
    unsigned graphs;

    KL_TRY(kl_graphs_read(q->graph, &graphs));
    kl_opened_about_machine(o);
    ncclResult_t rc = kl_search_report_make(&o->cluster, graphs, &report);

    if (!rc) rc = kl_search_json(&report, q->all, to);
    kl_search_report_fini(&report);
    return rc;
}

ncclResult_t koloplanExplainSearch(koloplanCluster_t cluster, const char *graph, int all, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanExplainSearch", .graph = graph, .all = all != 0},
                       cluster, answer_search, json);
}

/* ---- collectives ---- */

static ncclResult_t read_collective(const struct question *q, struct kl_coll_asked *asked)
{
    const struct kl_coll_question question = {q->collective, q->type, q->op, q->first, q->last};

    KL_TRY(need(q->collective, q->function, "collective"));
    return kl_coll_ask(&question, asked);
}

static ncclResult_t answer_collective(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_coll_asked asked;
    struct kl_coll_answer answer;

    KL_TRY(read_collective(q, &asked));
    ncclResult_t rc = kl_coll_answer_make(&asked, o, &answer);

    if (!rc) rc = kl_coll_json(&answer, to);
    kl_coll_answer_fini(&answer);
    return rc;
}

ncclResult_t koloplanExplainCollective(koloplanCluster_t cluster, const char *collective, const char *type,
                                       const char *op, int64_t first, int64_t last, char **json)
{
    struct question q = {.function = "koloplanExplainCollective",
                         .collective = collective,
                         .type = type,
                         .op = op,
                         .first = first,
                         .last = last};

    return ask_cluster(&q, cluster, answer_collective, json);
}

static ncclResult_t answer_estimate(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_coll_asked asked;

    if (q->n < 0) return KL_FAIL(ncclInvalidArgument, "%s: n is %d", q->function, q->n);
    if (q->n) KL_TRY(need(q->bytes, q->function, "bytes"));
    KL_TRY(read_collective(q, &asked));
    return kl_estimate_json(&asked, q->bytes, q->n, o, to);
}

ncclResult_t koloplanEstimate(koloplanCluster_t cluster, const char *collective, const char *type, const char *op,
                              const int64_t *bytes, int n, char **json)
{
    struct question q = {
        .function = "koloplanEstimate", .collective = collective, .type = type, .op = op, .bytes = bytes, .n = n};

    return ask_cluster(&q, cluster, answer_estimate, json);
}

/* ---- the order of summation, and traffic ---- */

/* A caller that was compiled with an older header has a shorter question. */
static ncclResult_t read_order(const char *function, const koloplanOrder_t *from, bool lint,
                               struct kl_order_question *order)
{
    const size_t least = offsetof(koloplanOrder_t, vs) + sizeof from->vs;
    koloplanOrder_t q = KOLOPLAN_ORDER_INITIALIZER;

    KL_TRY(need(from, function, "question"));
    if (from->size < least)
        return KL_FAIL(ncclInvalidArgument,
                       "%s: question.size is %zu; begin with KOLOPLAN_ORDER_INITIALIZER, which sets it", function,
                       from->size);
    memcpy(&q, from, from->size < sizeof q ? from->size : sizeof q);
    KL_TRY(need(q.collective, function, "question.collective"));
    if (q.ngroup) KL_TRY(need(q.group, function, "question.group"));
    *order = (struct kl_order_question){.op = {q.collective, q.type, q.op, q.first, q.last},
                                        .group = q.group,
                                        .ngroup = q.ngroup,
                                        .root = q.root,
                                        .registered = q.registered != 0,
                                        .lint = lint,
                                        .vs = q.vs};
    return ncclSuccess;
}

static ncclResult_t answer_order(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_order_answer a;
    ncclResult_t rc = kl_order_answer_make(&q->order, q->request, o, &a);

    if (!rc) rc = kl_order_json(&a, to);
    kl_order_answer_fini(&a);
    return rc;
}

static ncclResult_t ask_order(const char *function, struct koloplanCluster *cluster, const koloplanOrder_t *question,
                              bool lint, char **json)
{
    struct question q = {.function = function};

    KL_TRY(need(json, function, "json"));
    *json = NULL;
    KL_TRY(read_order(function, question, lint, &q.order));
    return ask_cluster(&q, cluster, answer_order, json);
}

ncclResult_t koloplanExplainOrder(koloplanCluster_t cluster, const koloplanOrder_t *question, char **json)
{
    return ask_order("koloplanExplainOrder", cluster, question, false, json);
}

ncclResult_t koloplanLintOrder(koloplanCluster_t cluster, const koloplanOrder_t *question, char **json)
{
    return ask_order("koloplanLintOrder", cluster, question, true, json);
}

static ncclResult_t answer_traffic(const struct question *q, struct kl_opened *o, FILE *to)
{
    const struct kl_traffic_question question = {
        {q->collective, q->type, q->op, q->first, q->last}, q->root, q->pod, q->npods, NULL};
    struct kl_traffic_answer a;

    KL_TRY(need(q->collective, q->function, "collective"));
    if (q->npods) KL_TRY(need(q->pod, q->function, "pods"));
    ncclResult_t rc = kl_traffic_answer_make(&question, o, &a);

    if (!rc) rc = kl_traffic_json(&a, to);
    kl_traffic_answer_fini(&a);
    return rc;
}

ncclResult_t koloplanExplainTraffic(koloplanCluster_t cluster, const char *collective, const char *type, const char *op,
                                    int64_t bytes, int root, const int64_t *pods, int npods, char **json)
{
    struct question q = {.function = "koloplanExplainTraffic",
                         .collective = collective,
                         .type = type,
                         .op = op,
                         .first = bytes,
                         .last = bytes,
                         .root = root,
                         .pod = pods,
                         .npods = npods};

    return ask_cluster(&q, cluster, answer_traffic, json);
}

/* ---- ends and NICs ---- */

static ncclResult_t answer_pair(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_pair_route route = {.nsegments = 0};

    KL_TRY(need(q->a, q->function, "a"));
    KL_TRY(need(q->b, q->function, "b"));
    kl_opened_about_machine(o);
    ncclResult_t rc = kl_pair_route_find(&o->cluster, q->a, q->b, &route);

    if (!rc) rc = kl_pair_json(&route, &o->cluster, to);
    kl_pair_route_fini(&route);
    return rc;
}

ncclResult_t koloplanExplainPair(koloplanCluster_t cluster, const char *a, const char *b, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanExplainPair", .a = a, .b = b}, cluster, answer_pair,
                       json);
}

static ncclResult_t answer_nics(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_nics n = {0};

    kl_opened_about_machine(o);
    ncclResult_t rc = kl_nics_find(&o->cluster, q->request->hosts > 0, &n);

    if (!rc) rc = kl_nics_json(&n, &o->cluster, to);
    kl_nics_fini(&n);
    return rc;
}

ncclResult_t koloplanExplainNics(koloplanCluster_t cluster, char **json)
{
    return ask_cluster(&(struct question){.function = "koloplanExplainNics"}, cluster, answer_nics, json);
}

/* ---- two clusters: opened anew, from the documents that describe them ---- */

static ncclResult_t answer_diff(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_cluster_request a = *q->request, b = *q->other;
    struct kl_diff *d = calloc(1, sizeof *d);

    (void)o;
    if (!d) return KL_NOMEM("differences");
    a.as_document = b.as_document = true;
    ncclResult_t rc = kl_diff_answer_make(&a, &b, d);

    if (!rc) rc = kl_diff_json(d, to);
    kl_diff_fini(d);
    free(d);
    return rc;
}

ncclResult_t koloplanDiff(koloplanCluster_t a, koloplanCluster_t b, char **json)
{
    struct question q = {.function = "koloplanDiff"};

    KL_TRY(need(json, q.function, "json"));
    *json = NULL;
    KL_TRY(need(a, q.function, "a"));
    KL_TRY(need(b, q.function, "b"));
    q.request = &a->request;
    q.other = &b->request;
    return ask(&q, NULL, answer_diff, json);
}

/* ---- logs and tables ---- */

static ncclResult_t check_text(const struct question *q, const koloplanText_t *t, int i)
{
    if (!t->name) return KL_FAIL(ncclInvalidArgument, "%s: texts[%d].name is NULL", q->function, i);
    if (!t->text && kl_plan_is_stdin(t->name))
        return KL_FAIL(ncclInvalidArgument, "%s: texts[%d].name is \"-\"; give text and bytes instead", q->function, i);
    return ncclSuccess;
}

/* A question about texts, with a cluster or NULL. */
static ncclResult_t ask_texts(const char *function, struct koloplanCluster *cluster, const koloplanText_t *texts, int n,
                              answerer *answer, char **json)
{
    const struct kl_cluster_request none = {.edits = {.params = &kl_param_registry}};
    struct question q = {.function = function, .n = n, .request = cluster ? &cluster->request : &none};

    KL_TRY(need(json, function, "json"));
    *json = NULL;
    KL_TRY(need(texts, function, "texts"));
    if (n < 1) return KL_FAIL(ncclInvalidArgument, "%s: n is %d; expected at least 1", function, n);
    for (int i = 0; i < n; i++) KL_TRY(check_text(&q, &texts[i], i));
    struct kl_named_text *text = calloc((size_t)n, sizeof *text);

    if (!text) return KL_NOMEM("texts");
    for (int i = 0; i < n; i++) text[i] = (struct kl_named_text){texts[i].name, texts[i].text, texts[i].bytes};
    q.text = text;
    ncclResult_t rc = ask(&q, NULL, answer, json);

    free(text);
    return rc;
}

static ncclResult_t answer_record(const struct question *q, FILE *to)
{
    struct kl_record_answer *a = calloc(1, sizeof *a);

    if (!a) return KL_NOMEM("an answer");
    ncclResult_t rc = kl_record_answer_make(q->text, q->n, a);

    if (!rc) rc = kl_record_json(a, to);
    kl_record_answer_fini(a);
    free(a);
    return rc;
}

static ncclResult_t answer_log(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_log_answer a;

    if (kl_record_answer_suits(q->text, q->n)) return answer_record(q, to);
    ncclResult_t rc = kl_log_answer_make(q->text, q->n, q->request, &a);

    (void)o;
    if (!rc) rc = kl_log_json(&a, to);
    kl_log_answer_fini(&a);
    return rc;
}

ncclResult_t koloplanExplainLog(koloplanCluster_t cluster, const koloplanText_t *texts, int n, char **json)
{
    return ask_texts("koloplanExplainLog", cluster, texts, n, answer_log, json);
}

static ncclResult_t answer_bench(const struct question *q, struct kl_opened *o, FILE *to)
{
    struct kl_bench b;
    ncclResult_t rc = kl_bench_answer_make(q->text, q->n, q->request, &b);

    (void)o;
    if (!rc) rc = kl_bench_json(&b, to);
    kl_bench_fini(&b);
    return rc;
}

ncclResult_t koloplanExplainBench(koloplanCluster_t cluster, const koloplanText_t *texts, int n, char **json)
{
    return ask_texts("koloplanExplainBench", cluster, texts, n, answer_bench, json);
}
