/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program sees it: linked as libkoloplan.so, and beside it the tool, which must say the same. */
#include "include/koloplan.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char file[] = "tests/data/topologies/synthetic/h100-rail-8nic-400g.xml";
static const char log_file[] = "tests/data/logs/two-hosts-far-nic.log";
static const char bench_file[] = "tests/data/logs/all-reduce-2x8h100.txt";

/* ---- the tool ---- */

/* All that a command prints; free() it. */
static char *output_of(const char *command)
{
    FILE *from = popen(command, "r");
    size_t used = 0, size = 1 << 16;
    char *text = malloc(size);

    assert_non_null(from);
    while (text && !feof(from)) {
        used += fread(text + used, 1, size - used - 1, from);
        if (size - used < 2) text = realloc(text, size *= 2);
    }
    assert_non_null(text);
    text[used] = 0;
    assert_int_equal(pclose(from), 0);
    return text;
}

static char *tool(const char *words)
{
    char command[1024];

    snprintf(command, sizeof command, "'%s/kolo' %s --json", getenv("KOLO_BUILD"), words);
    return output_of(command);
}

/* Times of searches are others each time: each stands on a line of its own. */
static void blank_times(char *text)
{
    static const char *const keys[] = {"\"search_ms\": ", "\"search_cpu_ms\": ", "\"search_cpu_ms_by_graph\": "};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char *at = strstr(text, keys[i]);

        if (!at) continue;
        at += strlen(keys[i]);
        memmove(at, at + strcspn(at, "\n"), strlen(at + strcspn(at, "\n")) + 1);
    }
}

/* ---- questions ---- */

/* The arguments of a row of the table below. */
struct asked {
    koloplanCluster_t cluster;
    const char *a, *b;
    int64_t first, last;
};

static ncclResult_t ask_topo(const struct asked *q, char **json)
{
    return koloplanTopo(q->cluster, json);
}

static ncclResult_t ask_path(const struct asked *q, char **json)
{
    return koloplanPath(q->cluster, q->a, q->b, json);
}

static ncclResult_t ask_graph(const struct asked *q, char **json)
{
    return koloplanGraph(q->cluster, q->a, json);
}

static ncclResult_t ask_collective(const struct asked *q, char **json)
{
    return koloplanExplainCollective(q->cluster, q->a, q->b, NULL, q->first, q->last, json);
}

static ncclResult_t ask_search(const struct asked *q, char **json)
{
    return koloplanExplainSearch(q->cluster, q->a, q->first != 0, json);
}

static ncclResult_t ask_pair(const struct asked *q, char **json)
{
    return koloplanExplainPair(q->cluster, q->a, q->b, json);
}

static ncclResult_t ask_order(const struct asked *q, char **json)
{
    const int64_t group[] = {4096};
    koloplanOrder_t o = KOLOPLAN_ORDER_INITIALIZER;

    o.collective = q->a;
    o.vs = q->b;
    o.first = q->first;
    o.last = q->last;
    o.group = group;
    o.ngroup = q->b != NULL;
    return koloplanExplainOrder(q->cluster, &o, json);
}

static ncclResult_t ask_order_lint(const struct asked *q, char **json)
{
    koloplanOrder_t o = KOLOPLAN_ORDER_INITIALIZER;

    o.collective = q->a;
    o.type = q->b;
    o.first = q->first;
    o.last = q->last;
    return koloplanLintOrder(q->cluster, &o, json);
}

static ncclResult_t ask_traffic(const struct asked *q, char **json)
{
    static const int64_t pods[] = {0, 1, 0, 1};

    return koloplanExplainTraffic(q->cluster, q->a, q->b, NULL, q->first, 0, pods, q->b ? 4 : 0, json);
}

static ncclResult_t ask_nics(const struct asked *q, char **json)
{
    return koloplanExplainNics(q->cluster, json);
}

static const struct question {
    const char *words; /* of the tool, without the cluster */
    ncclResult_t (*ask)(const struct asked *q, char **json);
    const char *a, *b;
    int64_t first, last;
    const char *schema;
} questions[] = {
    {"topo", ask_topo, NULL, NULL, 0, 0, "kolo.topo/1"},
    {"topo --path GPU/0 GPU/1", ask_path, "GPU/0", "GPU/1", 0, 0, "kolo.path/1"},
    {"graph", ask_graph, NULL, NULL, 0, 0, "kolo.graph/1"},
    {"graph --graph ring", ask_graph, "ring", NULL, 0, 0, "kolo.graph/1"},
    {"explain all_reduce 64M", ask_collective, "all_reduce", NULL, 64 << 20, 64 << 20, "kolo.collective/1"},
    {"explain reduce_scatter 1K-1G --type bf16", ask_collective, "reduce_scatter", "bf16", 1024, 1 << 30,
     "kolo.collective/1"},
    {"explain all_gather", ask_collective, "all_gather", NULL, 0, 0, "kolo.collective/1"},
    {"explain alltoall 1M", ask_collective, "alltoall", NULL, 1 << 20, 1 << 20, "kolo.collective/1"},
    {"explain barrier", ask_collective, "barrier", NULL, 0, 0, "kolo.collective/1"},
    {"explain search", ask_search, NULL, NULL, 0, 0, "kolo.search/1"},
    {"explain search tree --all", ask_search, "tree", NULL, 1, 0, "kolo.search/1"},
    {"explain pair GPU/0 GPU/3", ask_pair, "GPU/0", "GPU/3", 0, 0, "kolo.pair/1"},
    {"explain pair GPU/0 NET/1", ask_pair, "GPU/0", "NET/1", 0, 0, "kolo.pair/1"},
    {"explain order all_reduce 128K", ask_order, "all_reduce", NULL, 128 << 10, 128 << 10, "kolo.order/1"},
    {"explain order reduce_scatter 1K-1M", ask_order, "reduce_scatter", NULL, 1 << 10, 1 << 20, "kolo.order/1"},
    {"explain order reduce 4000 --vs NCCL_PROTO=LL --group 4096", ask_order, "reduce", "NCCL_PROTO=LL", 4000, 4000,
     "kolo.order/1"},
    {"explain order all_reduce 1M --type bf16 --lint", ask_order_lint, "all_reduce", "bf16", 1 << 20, 1 << 20,
     "kolo.order_lint/1"},
    {"explain traffic all_gather 1M", ask_traffic, "all_gather", NULL, 1 << 20, 0, "kolo.traffic/1"},
    {"explain traffic reduce 64K --type half --pod 0,1,0,1", ask_traffic, "reduce", "half", 64 << 10, 0,
     "kolo.traffic/1"},
    {"explain nics", ask_nics, NULL, NULL, 0, 0, "kolo.nics/1"},
};

static const char *const no_net3[] = {"NET/3"};
static const char *const ring_only[] = {"NCCL_ALGO=Ring"};

static const struct machine {
    const char *words; /* of the tool */
    koloplanRequest_t request;
} machines[] = {
    {"--machine dgx-h100", {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100"}},
    {"--machine dgx-h100 --hosts 4", {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .hosts = 4}},
    {"--machine dgx-a100 --hosts 2 --nccl 2.27.7",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-a100", .hosts = 2, .nccl = "2.27.7"}},
    {"--machine gb200-nvl72:2 --hosts 4", {.size = sizeof(koloplanRequest_t), .machine = "gb200-nvl72:2", .hosts = 4}},
    {"--machine dgx-h100 --hosts 2 --without NET/3 --with NCCL_ALGO=Ring --gpus 0,1,2,3",
     {.size = sizeof(koloplanRequest_t),
      .machine = "dgx-h100",
      .hosts = 2,
      .gpus = "0,1,2,3",
      .with = ring_only,
      .nwith = 1,
      .without = no_net3,
      .nwithout = 1}},
    {"--topo tests/data/topologies/synthetic/h100-rail-8nic-400g.xml --hosts 2 --constants host",
     {.size = sizeof(koloplanRequest_t), .topo = file, .hosts = 2, .constants = "host"}},
    {"--ranks 4", {.size = sizeof(koloplanRequest_t), .ranks = 4}},
};

static void begins_with_schema(const char *json, const char *schema)
{
    char want[64];

    snprintf(want, sizeof want, "\"schema\": \"%s\"", schema);
    assert_non_null(strstr(json, want));
    assert_true(strcspn(json, "\"") < 8 && strstr(json, want) < json + 8);
}

static void same_as_tool(const struct question *q, const struct machine *m, koloplanCluster_t cluster)
{
    const struct asked asked = {cluster, q->a, q->b, q->first, q->last};
    char words[512], *json = NULL, *want;

    if (strstr(m->words, "--constants") && !strncmp(q->words, "topo", 4)) return; /* the tool takes none there */
    ncclResult_t rc = q->ask(&asked, &json);

    if (rc) { /* such as a NIC on a machine without any: the tool refuses it as well */
        assert_null(json);
        assert_string_not_equal(koloplanGetLastError(), "");
        snprintf(words, sizeof words, "! '%s/kolo' %s %s --json 2>/dev/null", getenv("KOLO_BUILD"), q->words, m->words);
        free(output_of(words));
        return;
    }
    snprintf(words, sizeof words, "%s %s", q->words, m->words);
    want = tool(words);
    begins_with_schema(json, q->schema);
    blank_times(json);
    blank_times(want);
    if (strcmp(json, want) != 0) {
        size_t at = 0;

        while (json[at] == want[at]) at++;
        at -= at < 100 ? at : 100;
        fail_msg("kolo %s says otherwise:\n%.200s\nthe library:\n%.200s", words, want + at, json + at);
    }
    free(want);
    koloplanFree(json);
}

static void answers_are_those_of_the_tool(void **state)
{
    (void)state;
    FOR_EACH_CASE(m, machines)
    {
        koloplanCluster_t cluster;

        if (koloplanOpen(&m->request, &cluster)) fail_msg("%s: %s", m->words, koloplanGetLastError());
        FOR_EACH_CASE(q, questions) same_as_tool(q, m, cluster);
        FOR_EACH_CASE(q, questions)
        if (q->ask == ask_collective) same_as_tool(q, m, cluster); /* nothing of earlier questions stays */
        assert_int_equal(koloplanClose(cluster), ncclSuccess);
    }
}

static koloplanCluster_t open_machine(const char *machine, int hosts)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t cluster = NULL;

    request.machine = machine;
    request.hosts = hosts;
    assert_int_equal(koloplanOpen(&request, &cluster), ncclSuccess);
    return cluster;
}

static void expect_same(const char *json, const char *words)
{
    char *want = tool(words);

    assert_string_equal(json, want);
    free(want);
}

static void other_questions_too(void **state)
{
    const koloplanText_t log = {.name = log_file}, bench = {.name = bench_file};
    const koloplanText_t records[] = {{.name = "tests/data/records/absent_0"}, {.name = "tests/data/records/absent_3"}};
    koloplanCluster_t a = open_machine("dgx-h100", 2), b = open_machine("dgx-a100", 2);
    char *json;

    (void)state;
    assert_int_equal(koloplanMachines(&json), ncclSuccess);
    begins_with_schema(json, "kolo.machines/1");
    expect_same(json, "topo --machines");
    koloplanFree(json);
    assert_int_equal(koloplanDiff(a, b, &json), ncclSuccess);
    begins_with_schema(json, "kolo.diff/1");
    expect_same(json, "explain diff --machine dgx-h100 --machine dgx-a100 --hosts 2");
    koloplanFree(json);
    assert_int_equal(koloplanExplainLog(NULL, &log, 1, &json), ncclSuccess);
    begins_with_schema(json, "kolo.log/1");
    expect_same(json, "explain log tests/data/logs/two-hosts-far-nic.log");
    koloplanFree(json);
    assert_int_equal(koloplanExplainLog(a, &log, 1, &json), ncclSuccess);
    expect_same(json, "explain log tests/data/logs/two-hosts-far-nic.log --machine dgx-h100 --hosts 2");
    koloplanFree(json);
    assert_int_equal(koloplanExplainLog(NULL, records, 2, &json), ncclSuccess);
    begins_with_schema(json, "kolo.record/1");
    expect_same(json, "explain tests/data/records/absent_0 tests/data/records/absent_3");
    koloplanFree(json);
    assert_int_equal(koloplanExplainBench(NULL, &bench, 1, &json), ncclSuccess);
    begins_with_schema(json, "kolo.bench/1");
    expect_same(json, "explain bench tests/data/logs/all-reduce-2x8h100.txt");
    koloplanFree(json);
    koloplanClose(a);
    koloplanClose(b);
}

static void diff_sees_edits(void **state)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t a = open_machine("dgx-h100", 2), b;
    char *json;

    (void)state;
    request.machine = "dgx-h100";
    request.hosts = 2;
    request.without = no_net3;
    request.nwithout = 1;
    request.with = ring_only;
    request.nwith = 1;
    assert_int_equal(koloplanOpen(&request, &b), ncclSuccess);
    assert_int_equal(koloplanDiff(a, b, &json), ncclSuccess);
    expect_same(json, "explain diff --machine dgx-h100 --hosts 2 --without NET/3 --with NCCL_ALGO=Ring");
    koloplanFree(json);
    koloplanClose(a);
    koloplanClose(b);
}

/* ---- estimates ---- */

static double number_after(const char *json, const char *key)
{
    const char *at = strstr(json, key);

    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void estimates_are_the_times_of_choices(void **state)
{
    static const int64_t sizes[] = {1024, 1 << 20, 64 << 20};
    koloplanCluster_t cluster = open_machine("dgx-h100", 2);
    char *json, *at;

    (void)state;
    assert_int_equal(koloplanEstimate(cluster, "AllReduce", "bf16", NULL, sizes, 3, &json), ncclSuccess);
    begins_with_schema(json, "kolo.estimate/1");
    at = strstr(json, "\"estimates\"");
    for (int i = 0; i < 3; i++) {
        char *choice;

        at = strstr(at + 1, "\"bytes\"");
        assert_int_equal(koloplanExplainCollective(cluster, "all_reduce", "bf16", NULL, sizes[i], sizes[i], &choice),
                         ncclSuccess);
        assert_true(number_after(at, "\"bytes\": ") == (double)sizes[i]);
        assert_true(number_after(at, "\"time_us\": ") == number_after(strstr(choice, "\"choice\""), "\"time_us\": "));
        assert_true(number_after(at, "\"bus_gbs\": ") == number_after(strstr(choice, "\"choice\""), "\"bus_gbs\": "));
        koloplanFree(choice);
    }
    koloplanFree(json);
    assert_int_equal(koloplanEstimate(cluster, "barrier", NULL, NULL, NULL, 0, &json), ncclSuccess);
    koloplanFree(json);
    assert_int_equal(koloplanEstimate(cluster, "alltoall", NULL, NULL, sizes, 1, &json), ncclInvalidUsage);
    assert_non_null(strstr(koloplanGetLastError(), "sends and receives"));
    assert_int_equal(koloplanEstimate(cluster, "all_reduce", NULL, NULL, sizes, 0, &json), ncclInvalidArgument);
    assert_int_equal(koloplanEstimate(cluster, "barrier", NULL, NULL, sizes, 1, &json), ncclInvalidArgument);
    koloplanClose(cluster);
}

/* ---- texts in memory ---- */

static char *read_all(const char *path, size_t *bytes)
{
    FILE *from = fopen(path, "r");
    char *text = malloc(1 << 20);

    assert_non_null(from);
    assert_non_null(text);
    *bytes = fread(text, 1, 1 << 20, from);
    fclose(from);
    return text;
}

static void text_is_as_good_as_its_file(void **state)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanText_t log = {.name = log_file};
    koloplanCluster_t cluster;
    size_t bytes;
    char *text = read_all(file, &bytes), *json, *again;

    (void)state;
    request.text = text;
    request.bytes = bytes;
    request.label = file;
    request.hosts = 2;
    assert_int_equal(koloplanOpen(&request, &cluster), ncclSuccess);
    memset(text, '?', bytes); /* it was copied */
    free(text);
    assert_int_equal(koloplanExplainNics(cluster, &json), ncclSuccess);
    expect_same(json, "explain nics --hosts 2 --topo tests/data/topologies/synthetic/h100-rail-8nic-400g.xml");
    koloplanFree(json);
    koloplanClose(cluster);

    assert_int_equal(koloplanExplainLog(NULL, &log, 1, &json), ncclSuccess);
    log.text = text = read_all(log_file, &log.bytes);
    assert_int_equal(koloplanExplainLog(NULL, &log, 1, &again), ncclSuccess);
    assert_string_equal(json, again);
    free(text);
    koloplanFree(json);
    koloplanFree(again);
}

static void matrix_of_nvidia_smi_is_a_topology(void **state)
{
    static const char matrix[] = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
                                 "GPU0\t X \tNV12\t0-63\t0\n"
                                 "GPU1\tNV12\t X \t0-63\t0\n";
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t cluster;
    char *json;

    (void)state;
    request.text = matrix;
    request.bytes = sizeof matrix - 1;
    if (koloplanOpen(&request, &cluster)) fail_msg("%s", koloplanGetLastError());
    assert_int_equal(koloplanGraph(cluster, NULL, &json), ncclSuccess);
    assert_non_null(strstr(json, "\"gpus_per_host\": 2"));
    koloplanFree(json);
    koloplanClose(cluster);
}

/* ---- misuse ---- */

static void expect_refused(const char *label, ncclResult_t rc, ncclResult_t want, const char *words)
{
    if (rc != want) fail_msg("%s: result %d, expected %d (%s)", label, rc, want, koloplanGetLastError());
    if (!strstr(koloplanGetLastError(), words)) fail_msg("%s: \"%s\"", label, koloplanGetLastError());
    if (strchr(koloplanGetLastError(), '\n')) fail_msg("%s: more than a line", label);
}

static void null_is_refused(void **state)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanOrder_t order = KOLOPLAN_ORDER_INITIALIZER;
    koloplanCluster_t cluster = (koloplanCluster_t)&request;
    const koloplanText_t nameless = {.text = "x", .bytes = 1}, piped = {.name = "-"};
    char text[] = "x", *json = text;

    (void)state;
    request.machine = "dgx-h100";
    expect_refused("request", koloplanOpen(NULL, &cluster), ncclInvalidArgument, "request is NULL");
    assert_null(cluster);
    expect_refused("cluster", koloplanOpen(&request, NULL), ncclInvalidArgument, "cluster is NULL");
    expect_refused("version", koloplanGetVersion(NULL), ncclInvalidArgument, "version is NULL");
    expect_refused("plan", koloplanPlan(NULL), ncclInvalidArgument, "cluster is NULL");
    expect_refused("machines", koloplanMachines(NULL), ncclInvalidArgument, "json is NULL");
    expect_refused("topo", koloplanTopo(NULL, &json), ncclInvalidArgument, "koloplanTopo: cluster is NULL");
    assert_null(json);
    expect_refused("graph", koloplanGraph(NULL, NULL, &json), ncclInvalidArgument, "cluster is NULL");
    expect_refused("nics", koloplanExplainNics(NULL, &json), ncclInvalidArgument, "cluster is NULL");
    expect_refused("texts", koloplanExplainLog(NULL, NULL, 1, &json), ncclInvalidArgument, "texts is NULL");
    expect_refused("no text", koloplanExplainBench(NULL, &piped, 0, &json), ncclInvalidArgument, "n is 0");
    expect_refused("nameless", koloplanExplainLog(NULL, &nameless, 1, &json), ncclInvalidArgument, "texts[0].name");
    expect_refused("piped", koloplanExplainLog(NULL, &piped, 1, &json), ncclInvalidArgument, "texts[0].name is \"-\"");
    assert_null(koloplanGetWarning(NULL, 0));
    assert_int_equal(koloplanClose(NULL), ncclSuccess);
    koloplanFree(NULL);

    assert_int_equal(koloplanOpen(&request, &cluster), ncclSuccess);
    expect_refused("json", koloplanGraph(cluster, NULL, NULL), ncclInvalidArgument, "json is NULL");
    expect_refused("diff", koloplanDiff(cluster, NULL, &json), ncclInvalidArgument, "b is NULL");
    expect_refused("pair", koloplanExplainPair(cluster, "GPU/0", NULL, &json), ncclInvalidArgument, "b is NULL");
    expect_refused("path", koloplanPath(cluster, NULL, "GPU/0", &json), ncclInvalidArgument, "from is NULL");
    expect_refused("collective", koloplanExplainCollective(cluster, NULL, NULL, NULL, 0, 0, &json), ncclInvalidArgument,
                   "collective is NULL");
    expect_refused("sizes", koloplanEstimate(cluster, "all_reduce", NULL, NULL, NULL, 2, &json), ncclInvalidArgument,
                   "bytes is NULL");
    expect_refused("order", koloplanExplainOrder(cluster, NULL, &json), ncclInvalidArgument, "question is NULL");
    expect_refused("its json", koloplanLintOrder(cluster, &order, NULL), ncclInvalidArgument, "json is NULL");
    expect_refused("its collective", koloplanLintOrder(cluster, &order, &json), ncclInvalidArgument,
                   "question.collective is NULL");
    order.collective = "all_reduce";
    expect_refused("its cluster", koloplanExplainOrder(NULL, &order, &json), ncclInvalidArgument, "cluster is NULL");
    order.ngroup = 1;
    expect_refused("its group", koloplanExplainOrder(cluster, &order, &json), ncclInvalidArgument,
                   "question.group is NULL");
    order.size = 8;
    expect_refused("its size", koloplanExplainOrder(cluster, &order, &json), ncclInvalidArgument, "question.size is 8");
    expect_refused("traffic", koloplanExplainTraffic(cluster, NULL, NULL, NULL, 8, 0, NULL, 0, &json),
                   ncclInvalidArgument, "collective is NULL");
    assert_null(koloplanGetWarning(cluster, 0));
    koloplanClose(cluster);
}

static const struct bad_request {
    const char *label;
    koloplanRequest_t request;
    ncclResult_t rc;
    const char *words;
} bad_requests[] = {
    {"no size", {.machine = "dgx-h100"}, ncclInvalidArgument, "request.size is 0"},
    {"no such machine", {.size = sizeof(koloplanRequest_t), .machine = "dgx-nope"}, ncclInvalidUsage, "dgx-nope"},
    {"no such release",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .nccl = "9.99"},
     ncclInvalidArgument,
     "--nccl 9.99"},
    {"no such file",
     {.size = sizeof(koloplanRequest_t), .topo = "/nonexistent/x.xml"},
     ncclSystemError,
     "/nonexistent/x.xml"},
    {"a folder", {.size = sizeof(koloplanRequest_t), .topo = "tests"}, ncclSystemError, "folder"},
    {"no topology",
     {.size = sizeof(koloplanRequest_t), .text = "<graphs/>", .bytes = 9, .label = "my text"},
     ncclInvalidUsage,
     "my text is a graph file"},
    {"no XML",
     {.size = sizeof(koloplanRequest_t), .text = "<system", .bytes = 7},
     ncclInternalError,
     "text in memory:1"},
    {"no text", {.size = sizeof(koloplanRequest_t), .text = "", .bytes = 0}, ncclInternalError, "text in memory"},
    {"no matrix", {.size = sizeof(koloplanRequest_t), .text = "hello", .bytes = 5}, ncclInternalError, "syntax error"},
    {"piped", {.size = sizeof(koloplanRequest_t), .topo = "-"}, ncclInvalidArgument, "give text"},
    {"two sources",
     {.size = sizeof(koloplanRequest_t), .topo = file, .sysfs = "/"},
     ncclInvalidArgument,
     "more than one"},
    {"hosts",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .hosts = -2},
     ncclInvalidArgument,
     "request.hosts is -2"},
    {"constants",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .constants = "x"},
     ncclInvalidArgument,
     "expected reference or host"},
    {"gpus",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .gpus = "0,99"},
     ncclInvalidUsage,
     "--gpus 0,99"},
    {"list",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .nwith = 1},
     ncclInvalidArgument,
     "request.with is NULL"},
    {"no setting",
     {.size = sizeof(koloplanRequest_t), .machine = "dgx-h100", .with = no_net3, .nwith = 1},
     ncclInvalidArgument,
     "NET/3"},
    {"no node",
     {.size = sizeof(koloplanRequest_t),
      .machine = "dgx-h100",
      .without = (const char *const[]){"NET/77"},
      .nwithout = 1},
     ncclInvalidUsage,
     "NET/77"},
};

static void bad_requests_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(bad, bad_requests)
    {
        koloplanCluster_t cluster = (koloplanCluster_t)&cluster;

        expect_refused(bad->label, koloplanOpen(&bad->request, &cluster), bad->rc, bad->words);
        assert_null(cluster);
    }
}

static void bad_orders_are_refused(void **state)
{
    static const int64_t sizes[64] = {1};
    static const struct {
        const char *label;
        koloplanOrder_t question;
        ncclResult_t rc;
        const char *words;
    } bad[] = {
        {"collective", {.collective = "all_gather"}, ncclInvalidArgument, "AllGather adds nothing"},
        {"messages", {.collective = "alltoall"}, ncclInvalidArgument, "AllToAll adds nothing"},
        {"barrier", {.collective = "barrier"}, ncclInvalidArgument, "adds nothing"},
        {"range", {.collective = "all_reduce", .first = 8, .last = 4}, ncclInvalidArgument, "8 to 4"},
        {"root", {.collective = "reduce", .root = 8}, ncclInvalidUsage, "root 8"},
        {"negative root", {.collective = "reduce", .root = -1}, ncclInvalidUsage, "root -1"},
        {"group", {.collective = "reduce", .group = sizes, .ngroup = 2}, ncclInvalidArgument, "0 bytes"},
        {"large group", {.collective = "reduce", .group = sizes, .ngroup = 64}, ncclInvalidArgument, "at most 63"},
        {"negative group", {.collective = "reduce", .group = sizes, .ngroup = -1}, ncclInvalidArgument, "at most 63"},
        {"vs", {.collective = "all_reduce", .vs = "x"}, ncclInvalidArgument, "--vs x"},
        {"vs setting", {.collective = "all_reduce", .vs = "PATH=x"}, ncclInvalidArgument, "PATH"},
    };
    koloplanCluster_t c = open_machine("dgx-h100", 1);
    char *json;

    (void)state;
    FOR_EACH_CASE(b, bad)
    {
        koloplanOrder_t question = b->question;

        question.size = sizeof question;
        expect_refused(b->label, koloplanExplainOrder(c, &question, &json), b->rc, b->words);
        assert_null(json);
    }
    expect_refused("no size", koloplanExplainTraffic(c, "all_reduce", NULL, NULL, 0, 0, NULL, 0, &json),
                   ncclInvalidArgument, "expected one size");
    expect_refused("pods", koloplanExplainTraffic(c, "all_reduce", NULL, NULL, 8, 0, sizes + 1, 1, &json),
                   ncclInvalidArgument, "pods of 0");
    expect_refused("no pods", koloplanExplainTraffic(c, "all_reduce", NULL, NULL, 8, 0, NULL, 2, &json),
                   ncclInvalidArgument, "pods is NULL");
    expect_refused("other pods", koloplanExplainTraffic(c, "all_reduce", NULL, NULL, 8, 0, sizes, 2, &json),
                   ncclInvalidUsage, "for a cluster of 1");
    expect_refused("traffic's root", koloplanExplainTraffic(c, "reduce", NULL, NULL, 8, 8, NULL, 0, &json),
                   ncclInvalidUsage, "root 8");
    koloplanClose(c);
}

static void bad_questions_are_refused(void **state)
{
    static const int64_t zero = 0;
    koloplanCluster_t c = open_machine("dgx-h100", 1);
    char *json;

    (void)state;
    expect_refused("graph", koloplanGraph(c, "star", &json), ncclInvalidArgument, "star");
    expect_refused("search", koloplanExplainSearch(c, "star", 0, &json), ncclInvalidArgument, "star");
    expect_refused("pair", koloplanExplainPair(c, "GPU/0", "GPU/8", &json), ncclInvalidUsage, "GPU/8");
    expect_refused("path", koloplanPath(c, "GPU/0", "XYZ", &json), ncclInvalidUsage, "XYZ");
    expect_refused("collective", koloplanExplainCollective(c, "all_reed", NULL, NULL, 0, 0, &json), ncclInvalidArgument,
                   "all_reed");
    expect_refused("type", koloplanExplainCollective(c, "all_reduce", "f3", NULL, 0, 0, &json), ncclInvalidArgument,
                   "f3");
    expect_refused("op", koloplanExplainCollective(c, "all_reduce", NULL, "xor", 0, 0, &json), ncclInvalidArgument,
                   "xor");
    expect_refused("range", koloplanExplainCollective(c, "all_reduce", NULL, NULL, 8, 4, &json), ncclInvalidArgument,
                   "8 to 4");
    expect_refused("negative", koloplanExplainCollective(c, "all_reduce", NULL, NULL, -8, 4, &json),
                   ncclInvalidArgument, "-8");
    expect_refused("barrier", koloplanExplainCollective(c, "barrier", NULL, NULL, 8, 8, &json), ncclInvalidArgument,
                   "no size");
    expect_refused("estimate", koloplanEstimate(c, "all_reduce", NULL, NULL, &zero, 1, &json), ncclInvalidArgument,
                   "0 bytes");
    expect_refused("count", koloplanEstimate(c, "all_reduce", NULL, NULL, &zero, -1, &json), ncclInvalidArgument,
                   "n is -1");
    expect_refused("log", koloplanExplainLog(NULL, &(koloplanText_t){.name = "/nonexistent.log"}, 1, &json),
                   ncclSystemError, "/nonexistent.log");
    assert_null(json);
    koloplanClose(c);
}

static void file_of_the_environment_is_warned_of(void **state)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t cluster;

    (void)state;
    assert_int_equal(setenv("NCCL_TOPO_FILE", "/nonexistent.xml", 1), 0);
    request.ranks = 2;
    assert_int_equal(koloplanOpen(&request, &cluster), ncclSuccess);
    assert_non_null(koloplanGetWarning(cluster, 0));
    assert_non_null(strstr(koloplanGetWarning(cluster, 0), "/nonexistent.xml"));
    assert_null(koloplanGetWarning(cluster, 1));
    assert_null(koloplanGetWarning(cluster, -1));
    koloplanClose(cluster);
    unsetenv("NCCL_TOPO_FILE");
}

/* ---- threads ---- */

enum { THREADS = 6, ROUNDS = 3 };

static const char *const thread_machines[THREADS] = {"dgx-h100", "dgx-a100", "gb200-nvl72:2",
                                                     "dgx-h100", "dgx-a100", "hgx-b200"};

struct thread {
    pthread_t thread;
    const char *machine;
    koloplanCluster_t shared;
    char *graph, *choice; /* right answers */
    const char *failed;
};

/* In threads, assertions of cmocka would jump away. */
static void check(struct thread *t, ncclResult_t rc, char **answer, const char *want, const char *label)
{
    char *json = *answer;

    if (!rc && json) blank_times(json);
    if (rc || !json || strcmp(json, want) != 0) t->failed = label;
    koloplanFree(json);
}

static void *ask_all(void *arg)
{
    struct thread *t = arg;
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;

    request.machine = t->machine;
    request.hosts = 2;
    for (int i = 0; i < ROUNDS; i++) {
        koloplanCluster_t own = NULL, none;
        koloplanRequest_t bad = request;
        char *json = NULL;
        ncclResult_t rc;

        bad.nccl = t->machine;
        if (koloplanOpen(&request, &own)) t->failed = "open";
        rc = koloplanGraph(own, NULL, &json);
        check(t, rc, &json, t->graph, "the graph of its own cluster");
        rc = koloplanExplainCollective(own, "all_reduce", NULL, NULL, 0, 0, &json);
        check(t, rc, &json, t->choice, "its own choice");
        rc = koloplanExplainCollective(t->shared, "all_reduce", NULL, NULL, 0, 0, &json);
        check(t, rc, &json, t->choice, "the shared choice");
        if (!koloplanOpen(&bad, &none) || !strstr(koloplanGetLastError(), t->machine)) t->failed = "its own error";
        koloplanClose(own);
    }
    return NULL;
}

static int first_with(const char *machine)
{
    int i = 0;

    while (strcmp(thread_machines[i], machine) != 0) i++;
    return i;
}

static void threads_ask_about_different_clusters(void **state)
{
    struct thread t[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        const int first = first_with(thread_machines[i]); /* threads with one machine share a cluster */

        t[i] = (struct thread){.machine = thread_machines[i]};
        t[i].shared = first < i ? t[first].shared : open_machine(thread_machines[i], 2);
        assert_int_equal(koloplanGraph(t[i].shared, NULL, &t[i].graph), ncclSuccess);
        blank_times(t[i].graph);
        assert_int_equal(koloplanExplainCollective(t[i].shared, "all_reduce", NULL, NULL, 0, 0, &t[i].choice),
                         ncclSuccess);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i].thread, NULL, ask_all, &t[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (t[i].failed) fail_msg("%s: %s", t[i].machine, t[i].failed);
    for (int i = THREADS; i-- > 0;) {
        koloplanFree(t[i].graph);
        koloplanFree(t[i].choice);
        if (first_with(t[i].machine) == i) koloplanClose(t[i].shared);
    }
}

int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(answers_are_those_of_the_tool),
        cmocka_unit_test(other_questions_too),
        cmocka_unit_test(diff_sees_edits),
        cmocka_unit_test(estimates_are_the_times_of_choices),
        cmocka_unit_test(text_is_as_good_as_its_file),
        cmocka_unit_test(matrix_of_nvidia_smi_is_a_topology),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(bad_orders_are_refused),
        cmocka_unit_test(bad_questions_are_refused),
        cmocka_unit_test(file_of_the_environment_is_warned_of),
    };
    const struct CMUnitTest threads[] = {cmocka_unit_test(threads_ask_about_different_clusters)};
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
