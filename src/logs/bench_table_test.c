/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of nccl-tests: rows of all releases, broken ones, JSON; findings without and with a model. */
#include "logs/bench_file.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char topo[] = "tests/data/topologies/synthetic/h100-rail-8nic-400g.xml";

static struct kl_cluster_request no_machine(void)
{
    return (struct kl_cluster_request){.edits = {.params = &kl_param_registry}};
}

static struct kl_bench read_for(const char *text, const struct kl_cluster_request *q)
{
    struct kl_bench b;

    kl_bench_init(&b);
    assert_int_equal(kl_bench_add_any(&b, "a.txt", text, strlen(text)), ncclSuccess);
    if (kl_bench_finish(&b, q)) fail_msg("%s", kl_error_text());
    return b;
}

static struct kl_bench read_text(const char *text)
{
    struct kl_cluster_request q = no_machine();

    return read_for(text, &q);
}

/* ---- rows ---- */

static const struct {
    const char *text;
    int64_t size;
    double out, in;
    int64_t wrong;
} row_cases[] = {
    {"  1048576  262144  float  sum  -1  50.0  20.97  36.70  3  49.0  21.40  37.45  0", 1048576, 50, 49, 3},
    {"  1048576  262144  float  sum      50.0  20.97  36.70  0e+00  49.0  21.40  37.45  4e-07", 1048576, 50, 49, -1},
    {"  1048576   16384  float  none -1  53  19.8  14.8  N/A  54  19.6  14.7  N/A", 1048576, 53, 54, -1},
    {"  1048576  262144  float  sum  -1  50.0  20.97  36.70  0", 1048576, 50, 0, 0},
    {"  1048576  262144  float  sum  -1\n  50.0  20.97  36.70  0\n  49.0  21.40  37.45  0\n", 1048576, 50, 49, 0},
    {"  1048576  262144  float  sum  -1n:1:1 [0] NCCL INFO x\n 50.0  20.97  36.70  0n:1:1 [0] NCCL INFO x\n 49.0 21.4 "
     "37.4 0",
     1048576, 50, 49, 0},
    {"[1,0]<stdout>:  1048576  262144  float  sum  -1  50.0  20.97  36.70  0  49.0  21.40  37.45  0\r", 1048576, 50, 49,
     0},
    {"0:  1048576  262144  float  sum  -1  50.0  20.97  36.70  0  49.0  21.40  37.45  0", 1048576, 50, 49, 0},
    {"2025-06-01T10:00:00.1Z stdout F  1048576  262144  float  sum  -1  50.0  20.97  36.70  0  49.0  21.40  37.45  0",
     1048576, 50, 49, 0},
    {"\033[32m 1048576  262144  float  sum  -1  50.0  20.97  36.70  0  49.0  21.40  37.45  0\033[0m", 1048576, 50, 49,
     0},
    {"1_048_576   50.0  20.97  36.70\n", 1048576, 50, 0, -1},
};

static void rows_of_all_kinds(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, row_cases)
    {
        struct kl_bench b = read_text(c->text);
        const struct kl_bench_row *r = &b.row[0];

        expect_case(c->text, b.nrow == 1 && r->size == c->size);
        expect_case(c->text, r->time[0].us == c->out && r->time[1].us == c->in);
        expect_case(c->text, r->time[1].there == (c->in > 0) && r->time[0].wrong == c->wrong);
        kl_bench_fini(&b);
    }
}

static void what_is_no_table_is_refused(void **state)
{
    static const char *const texts[] = {"", "hello 1 2 3\n", "{\"size\": \"x\"}", "12 13\n1 2 3 4\n", "[[[["};
    struct kl_cluster_request q = no_machine();

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kl_bench b;
        int quiet = kl_error_quiet(1);

        kl_bench_init(&b);
        assert_int_equal(kl_bench_add_any(&b, "a.txt", texts[i], strlen(texts[i])), ncclSuccess);
        assert_int_equal(kl_bench_finish(&b, &q), ncclInvalidUsage);
        kl_error_quiet(quiet);
        kl_bench_fini(&b);
    }
}

static void json_has_the_same_rows(void **state)
{
    struct kl_bench b = read_text(
        "{\"version\": {\"nccl_version\": \"2.28.9\"}, \"config\": {\"nranks\": 8, \"name\": \"all_reduce_perf\"},\n"
        "\"results\": [{\"size\": 1024, \"count\": 256, \"type\": \"float\", \"redop\": \"sum\",\n"
        "\"out_of_place\": {\"time\": 12.5, \"alg_bw\": 0.08, \"bus_bw\": 0.14, \"nwrong\": 2},\n"
        "\"in_place\": {\"time\": 12.0, \"alg_bw\": 0.09, \"bus_bw\": 0.15, \"nwrong\": \"N/A\"}},\n"
        "{\"size\": 2048, \"out_of_place\": {\"time\": 13, \"alg_bw\": 0.16, \"bus_bw\": 0.28}}]}");

    (void)state;
    assert_int_equal(b.nrow, 2);
    assert_int_equal(b.ntable, 1);
    assert_int_equal(b.table[0].nranks, 8);
    assert_string_equal(b.table[0].name, "all_reduce");
    assert_string_equal(b.table[0].version, "2.28.9");
    assert_true(b.row[0].time[0].us == 12.5 && b.row[0].time[1].us == 12);
    assert_int_equal(b.row[0].time[0].wrong, 2);
    assert_int_equal(b.row[0].time[1].wrong, -1);
    assert_int_equal(b.row[1].size, 2048);
    assert_int_equal(b.row[0].at.line, 2);
    assert_int_equal(b.row[1].at.line, 5);
    kl_bench_fini(&b);
}

static void json_that_is_cut_is_told(void **state)
{
    static const char text[] = "{\"results\": [\n{\"size\": 1024, \"out_of_place\": {\"time\": 12.5";
    struct kl_bench b;
    int quiet = kl_error_quiet(1);

    (void)state;
    kl_bench_init(&b);
    assert_int_equal(kl_bench_add_any(&b, "a.json", text, strlen(text)), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "a.json:2: "));
    kl_error_quiet(quiet);
    kl_bench_fini(&b);
}

/* Facts of a run do not apply to the next one; sizes that begin anew are the same run. */
static void a_table_has_nothing_of_another_run(void **state)
{
    struct kl_bench b = read_text("# Collective test starting: all_gather_perf\n"
                                  "#  Rank  0 Group  0 Pid 5 on hostA device  0 [0000:0f:00] NVIDIA H100\n"
                                  "#  Rank  1 Group  0 Pid 6 on hostB device  0 [0000:0f:00] NVIDIA H100\n"
                                  " 33554432 1 float none -1 2000 16.78 8.39 0 2000 16.78 8.39 0\n"
                                  "hostA: all_gather_perf says something\n"
                                  " 67108864 1 float none -1 4000 16.78 8.39 0 4000 16.78 8.39 0\n"
                                  " 33554432 1 half none -1 2000 16.78 8.39 0 2000 16.78 8.39 0\n"
                                  "# nThread 1 nGpus 1\n"
                                  "#       size         count      type   redop    root     time   algbw   busbw\n"
                                  " 33554432 1 float sum -1 2000 16.78 16.78 0 2000 16.78 16.78 0\n"
                                  " 67108864 1 float sum -1 4000 16.78 16.78 0 4000 16.78 16.78 0\n"
                                  "# Collective test starting: sendrecv_perf\n"
                                  "#  Rank 71 Group  0 Pid 6 on hostB device  0 [0000:0f:00] NVIDIA B200\n"
                                  " 33554432 1 float sum -1 2000 16.78 16.78 0 2000 16.78 16.78 0\n");

    (void)state;
    assert_int_equal(b.ntable, 4);
    assert_string_equal(b.table[1].name, "all_gather");
    assert_int_equal(b.table[1].nranks, 2);
    assert_int_equal(b.table[1].nhosts, 2);
    assert_string_equal(b.table[2].name, "");
    assert_int_equal(b.table[2].nranks, 0);
    assert_string_equal(b.table[2].gpu, "");
    assert_string_equal(b.table[3].name, "sendrecv");
    assert_int_equal(b.table[3].nranks, 72);
    assert_int_equal(b.table[3].nhosts, 0); /* the list is cut */
    kl_bench_fini(&b);
}

static void tables_have_names_and_ranks(void **state)
{
    struct kl_bench b = read_text("# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903\n"
                                  "# Collective test starting: all_gather_perf\n"
                                  "#  Rank  0 Group  0 Pid 5 on hostA device  0 [0000:0f:00] NVIDIA H100\n"
                                  "#  Rank  1 Group  0 Pid 6 on hostB device  0 [0000:0f:00] NVIDIA H100\n"
                                  " 33554432 1 float none -1 2000 16.78 8.39 0 2000 16.78 8.39 0\n"
                                  "## section: another\n"
                                  " 33554432 8388608 float sum -1 1000 33.55 58.72 0 1000 33.55 58.72 0\n");

    (void)state;
    assert_int_equal(b.ntable, 2);
    assert_string_equal(b.table[0].name, "all_gather");
    assert_int_equal(b.table[0].nranks, 2);
    assert_int_equal(b.table[0].nhosts, 2);
    assert_string_equal(b.table[0].version, "2.29.3");
    assert_string_equal(b.table[1].name, "all_reduce"); /* by its bandwidths */
    assert_int_equal(b.table[1].nranks, 8);
    assert_string_equal(b.table[1].version, "");
    kl_bench_fini(&b);
}

/* ---- findings ---- */

#define ROW(size, us, alg, bus, wrong, us2, bus2)                                                                      \
    size " 1 float sum -1 " us " " alg " " bus " " wrong " " us2 " " alg " " bus2 " 0\n"
#define SAME(size, us, alg, bus) ROW(size, us, alg, bus, "0", us, bus)

static const struct {
    const char *text, *first; /* the worst finding; "" none */
} finding_cases[] = {
    {SAME("33554432", "1000", "33.55", "58.72") SAME("67108864", "1900", "35.3", "61.8"), ""},
    {ROW("33554432", "1000", "33.55", "58.72", "7", "1000", "58.72"), "wrong"},
    {SAME("33554432", "1000", "33.55", "0.00"), "alone"},
    {SAME("16777216", "500", "33.5", "58.7") SAME("33554432", "4000", "8.4", "14.7")
         SAME("67108864", "1900", "35.3", "61.8"),
     "dip"},
    {SAME("33554432", "1000", "33.55", "58.72") SAME("67108864", "3000", "22.4", "39.1"), "falls"},
    {ROW("33554432", "1000", "33.55", "58.72", "0", "2000", "29.4"), "places"},
    {SAME("8", "300", "0.01", "0.01") SAME("33554432", "1000", "33.55", "58.72"), "slow_start"},
    {"# Out of bounds values : 4 FAILED\n" SAME("33554432", "1000", "33.55", "58.72"), ""},
    {SAME("33554432", "1000", "33.55", "58.72") "# Out of bounds values : 4 FAILED\n", "wrong"},
};

static void tables_show_by_themselves(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, finding_cases)
    {
        struct kl_bench b = read_text(c->text);
        const char *first = b.nfinding ? kl_bench_finding_name(b.finding[0].code) : "";

        if (strcmp(first, c->first)) fail_msg("\"%s\": \"%s\" instead of \"%s\"", c->text, first, c->first);
        kl_bench_fini(&b);
    }
}

/* ---- beside the model ---- */

#define HOSTS 2
#define RANKS 16

static struct kl_cluster_request a_machine(void)
{
    struct kl_cluster_request q = no_machine();

    q.topo = topo;
    q.nccl = "2.26.3";
    q.hosts = HOSTS;
    return q;
}

/* A table with the times that the model itself has for a request. `kind`: type and operation. */
static void write_model(const struct kl_cluster_request *q, const char *kind, char *text, size_t size)
{
    struct kl_text asked = kl_text_in(text, size);
    char table[4096];
    struct kl_text t = kl_text_in(table, sizeof table);

    for (int i = 22; i < 34; i++) kl_text_add(&asked, "%lld 1 %s -1 1000 1 1.875 0\n", 1LL << i, kind);
    struct kl_bench b = read_for(text, q);

    assert_true(b.table[0].modelled);
    assert_int_equal(b.table[0].nranks, RANKS);
    for (int i = 0; i < b.nrow; i++) {
        double us = b.row[i].predicted_us;

        assert_true(us > 0);
        kl_text_add(&t, "%lld 1 %s -1 %.2f %.2f %.2f 0\n", (long long)b.row[i].size, kind, us,
                    (double)b.row[i].size / us / 1e3, 1.875 * (double)b.row[i].size / us / 1e3);
    }
    kl_bench_fini(&b);
    snprintf(text, size, "%s", table);
}

static struct kl_bench judged_after(const char *with)
{
    struct kl_cluster_request q = a_machine(), changed = q;
    char text[4096];

    changed.edits.with = (struct kl_edit_list){&with, with ? 1 : 0};
    write_model(&changed, "float sum", text, sizeof text);
    return read_for(text, &q);
}

static void what_the_model_says_is_no_problem(void **state)
{
    struct kl_bench b = judged_after(NULL);

    (void)state;
    assert_int_equal(b.nfinding, 0);
    assert_true(b.table[0].off < 1.01);
    assert_int_equal(b.table[0].beside, KL_BENCH_ALIKE);
    assert_int_equal(b.table[0].compared, 10); /* 16 MiB and more */
    assert_int_equal(b.table[0].nhypotheses, 0);
    kl_bench_fini(&b);
}

static void a_missing_setting_is_found(void **state)
{
    static const struct {
        const char *with, *name;
    } cases[] = {{"NCCL_P2P_DISABLE=1", "no_p2p"}, {"NCCL_PROTO=LL", "ll"}, {"NCCL_ALGO=Tree", "tree"}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_bench b = judged_after(c->with);

        expect_case(c->with, b.nfinding && b.finding[0].code == KL_BENCH_SHORT && b.finding[0].problem);
        expect_case(c->with, b.table[0].beside == KL_BENCH_SLOWER);
        expect_case(c->with, b.table[0].nhypotheses && !strcmp(b.table[0].hypothesis[0].name, c->name));
        expect_case(c->with, b.table[0].hypothesis[0].off < 1.02);
        kl_bench_fini(&b);
    }
}

/* NICs that the user left out stay out when others are left out for a trial. */
static void trials_keep_what_was_asked_for(void **state)
{
    static const char *const gone[] = {"NET/0"}, *const nearly_all[] = {"NET/0", "NET/2", "NET/3", "NET/4",
                                                                        "NET/5", "NET/6", "NET/7"};
    struct kl_cluster_request q = a_machine(), one = q;
    char text[4096];
    bool found = false;

    (void)state;
    one.edits.without = (struct kl_edit_list){nearly_all, 7};
    write_model(&one, "float sum", text, sizeof text);
    q.edits.without = (struct kl_edit_list){gone, 1};
    struct kl_bench b = read_for(text, &q);

    for (int i = 0; i < b.table[0].nhypotheses; i++)
        found |= !strcmp(b.table[0].hypothesis[i].name, "one_net") && b.table[0].hypothesis[i].off < 1.001;
    assert_true(found);
    kl_bench_fini(&b);
}

/* NVSwitches do not reduce every type: the model predicts the slower times. */
static void types_and_operations_count(void **state)
{
    struct kl_cluster_request q = a_machine();
    char text[4096], *word;

    (void)state;
    q.hosts = 1;
    struct kl_bench b =
        read_for("1073741824 1 float sum -1 1000 1 1.75 0\n1073741824 1 float prod -1 1000 1 1.75 0\n"
                 "1073741824 1 float mulsum -1 1000 1 1.75 0\n1073741824 1 uint8 sum -1 1000 1 1.75 0\n",
                 &q);

    assert_int_equal(b.nrow, 4);
    assert_true(b.row[1].predicted_us > 1.1 * b.row[0].predicted_us);
    assert_true(b.row[2].predicted_us == b.row[1].predicted_us && b.row[3].predicted_us == b.row[1].predicted_us);
    kl_bench_fini(&b);

    q.hosts = HOSTS;
    write_model(&q, "float prod", text, sizeof text);
    b = read_for(text, &q);
    assert_int_equal(b.table[0].beside, KL_BENCH_ALIKE);
    kl_bench_fini(&b);
    for (word = text; (word = strstr(word, "prod"));) memcpy(word, "sum ", 4); /* the same times, but for sums */
    b = read_for(text, &q);
    assert_int_equal(b.table[0].beside, KL_BENCH_SLOWER);
    kl_bench_fini(&b);
}

static void other_ranks_are_not_compared(void **state)
{
    struct kl_cluster_request q = no_machine();

    (void)state;
    q.topo = topo;
    struct kl_bench b = read_for(SAME("33554432", "1000", "33.55", "44.73"), &q); /* 3 ranks */

    assert_false(b.table[0].modelled);
    assert_string_equal(b.why, "a table has 3 ranks, the machine 8 (--hosts, --gpus)");
    kl_bench_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_kinds),          cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(json_has_the_same_rows),     cmocka_unit_test(tables_have_names_and_ranks),
        cmocka_unit_test(json_that_is_cut_is_told),   cmocka_unit_test(a_table_has_nothing_of_another_run),
        cmocka_unit_test(tables_show_by_themselves),  cmocka_unit_test(what_the_model_says_is_no_problem),
        cmocka_unit_test(a_missing_setting_is_found), cmocka_unit_test(trials_keep_what_was_asked_for),
        cmocka_unit_test(types_and_operations_count), cmocka_unit_test(other_ranks_are_not_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
