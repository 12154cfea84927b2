/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology's part of recorded results of NCCL's own code: nodes, system, paths and queries, key by key.
 * The records of tests/data/ always; with KOLO_SHARED (else ../shared, where that exists) also all of golden/ there.
 */
#include "tools/kolo/graph_json.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <ctype.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const compared[] = {"ranks_total", "gpus_per_host", "nnodes",   "rank_to_node", "max_local_ranks",
                                       "system",      "max_bw",        "total_bw", "paths"};
static const char *const queries[] = {"gpu_ranks", "p2p",       "use_net",           "gdr",
                                      "local_net", "local_gpu", "intermediate_rank", "p2p_net"};

/* ---- comparing ---- */

/* Where two values differ first, as a path of keys. */
static char place[256];

static bool differ(const json_t *want, const json_t *got, size_t used);

static bool arrays_differ(const json_t *want, const json_t *got, size_t used)
{
    size_t n = json_array_size(want);

    if (!json_is_array(got) || json_array_size(got) != n) return true;
    for (size_t i = 0; i < n; i++) {
        size_t more = (size_t)snprintf(place + used, sizeof place - used, "[%zu]", i);
        if (differ(json_array_get(want, i), json_array_get(got, i), used + more)) return true;
    }
    return false;
}

/* Keys that only Kolo prints are welcome. */
static bool objects_differ(json_t *want, const json_t *got, size_t used)
{
    const char *key;
    json_t *value;

    json_object_foreach(want, key, value)
    {
        size_t more = (size_t)snprintf(place + used, sizeof place - used, ".%s", key);
        if (differ(value, json_object_get(got, key), used + more)) return true;
    }
    return false;
}

static bool differ(const json_t *want, const json_t *got, size_t used)
{
    if (used > sizeof place - 64) return true;
    if (!want || !got) return want != got;
    if (json_is_array(want)) return arrays_differ(want, got, used);
    if (json_is_object(want)) return objects_differ((json_t *)want, got, used);
    if (json_is_number(want))
        return !json_is_number(got) ||
               fabs(json_number_value(want) - json_number_value(got)) > 1e-6 * fabs(json_number_value(want));
    return !json_equal(want, got);
}

static void compare(const char *record, const char *key, const json_t *want, const json_t *got)
{
    size_t used = (size_t)snprintf(place, sizeof place, "%s", key);

    if (want && differ(want, got, used)) fail_msg("%s: %s", record, place);
}

/* ---- records ---- */

static void clear_environment(void)
{
    static const char *const names[] = {"NCCL_P2P_DISABLE",     "NCCL_P2P_LEVEL",          "NCCL_NET_DISABLE_INTRA",
                                        "NCCL_SHM_DISABLE",     "NCCL_NVB_DISABLE",        "NCCL_NET_GDR_LEVEL",
                                        "NCCL_NET_GDR_READ",    "NCCL_NET_GDR_C2C",        "NCCL_P2P_PXN_LEVEL",
                                        "NCCL_PXN_DISABLE",     "NCCL_CROSS_NIC",          "KOLO_MNNVL",
                                        "NCCL_NET_FORCE_FLUSH", "NCCL_IGNORE_DISABLED_P2P"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
}

static void set_environment(const json_t *record)
{
    const char *key;
    json_t *value;

    clear_environment();
    json_object_foreach(json_object_get(record, "env"), key, value)
    {
        char text[64];
        const char *string = json_string_value(value);

        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        setenv(key, string ? string : text, 1);
    }
}

static void compare_topology(const char *name, const json_t *record, struct kl_cluster *cluster,
                             const struct kl_topo *t)
{
    json_t *got = json_object(), *asked = kl_json_queries(t, cluster);

    expect_case(name, !kl_json_nodes(got, cluster));
    json_object_set_new(got, "system", kl_json_system(t));
    json_object_set_new(got, "max_bw", kl_json_float(t->max_bw));
    json_object_set_new(got, "total_bw", kl_json_float(t->total_bw));
    json_object_set_new(got, "paths", kl_json_paths(t));
    FOR_EACH_CASE(key, compared) compare(name, *key, json_object_get(record, *key), json_object_get(got, *key));
    FOR_EACH_CASE(key, queries)
    compare(name, *key, json_object_get(json_object_get(record, "queries"), *key), json_object_get(asked, *key));
    json_decref(got);
    json_decref(asked);
}

/* Bad input: an error of one line that begins with the file's name. */
static void expect_refusal(const char *name, const char *file, ncclResult_t rc)
{
    expect_case(name, rc != ncclSuccess);
    if (strncmp(kl_error_text(), file, strlen(file)) != 0 || strchr(kl_error_text(), '\n'))
        fail_msg("%s: %s", name, kl_error_text());
}

static void check_record(const char *path, const char *topologies)
{
    json_t *record = json_load_file(path, 0, NULL);
    char file[512];
    struct kl_cluster cluster;
    struct kl_topo *t = NULL;

    assert_non_null(record);
    set_environment(record);
    snprintf(file, sizeof file, "%s/%s", topologies, json_string_value(json_object_get(record, "topology")));
    struct kl_cluster_request args = {.topo = file, .hosts = (int)json_integer_value(json_object_get(record, "hosts"))};
    ncclResult_t rc = kl_cluster_open(&args, &cluster);
    if (json_object_get(record, "error")) {
        expect_refusal(path, file, rc);
    } else {
        expect_case(path, rc == ncclSuccess);
        expect_case(path, kl_cluster_topo(&cluster, 0, &t) == ncclSuccess);
        compare_topology(path, record, &cluster, t);
        kl_topo_free(t);
        kl_cluster_close(&cluster);
    }
    json_decref(record);
    clear_environment();
}

static size_t check_records(const char *pattern, const char *topologies)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found)) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) check_record(found.gl_pathv[i], topologies);
    size_t n = found.gl_pathc;
    globfree(&found);
    return n;
}

static void records_of_the_project_agree(void **state)
{
    (void)state;
    assert_true(check_records("tests/data/golden/*.json", "tests/data/topologies") >= 100);
}

static void all_records_agree(void **state)
{
    const char *shared = getenv("KOLO_SHARED");
    char golden[512], random[512], topologies[512];

    (void)state;
    snprintf(golden, sizeof golden, "%.400s/golden/*.json", shared && *shared ? shared : "../shared");
    snprintf(random, sizeof random, "%.400s/golden/random/*.json", shared && *shared ? shared : "../shared");
    snprintf(topologies, sizeof topologies, "%.400s/topologies", shared && *shared ? shared : "../shared");
    size_t n = check_records(golden, topologies) + check_records(random, topologies);
    if (!n) {
        printf("no further records: KOLO_SHARED is not set, and ../shared not there\n");
        skip();
    }
    printf("%zu further records\n", n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_the_project_agree),
        cmocka_unit_test(all_records_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
