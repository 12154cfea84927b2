/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/perf_stats.h"
#include "tools/kolo/perf_table.h"
#include "topo/release.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char *text;
static size_t length;

static FILE *open_text(void)
{
    free(text);
    text = NULL;
    return open_memstream(&text, &length);
}

static void expect_text(FILE *f, const char *want)
{
    fclose(f);
    assert_string_equal(text, want);
}

/* As a reader of nccl-tests' output knows it. */
static void the_table_looks_like_that_of_nccl_tests(void **state)
{
    struct kl_perf_config c = {.coll = &kl_colls[KL_ALL_REDUCE],
                               .release = KL_NCCL_DEFAULT,
                               .min_bytes = 8,
                               .max_bytes = 128 << 20,
                               .step_factor = 2,
                               .nthreads = 1,
                               .ndevices = 2,
                               .warmups = 5,
                               .iterations = 20,
                               .aggregated = 1,
                               .checks = 1};
    struct kl_perf_device devices[] = {{0, 23456, 0, "machine"}, {1, 23456, 1, "machine"}};
    struct kl_perf_row row = {.bytes = 8, .count = 2, .type = "float", .op = "sum", .root = -1};
    struct kl_perf_half out = {.time_us = 23.944, .bandwidth = {0.004, 123.456}, .wrong = 0};
    struct kl_perf_half in = {.time_us = 123.45, .bandwidth = {1234.5, 0}, .wrong = 17};
    struct kl_perf_summary s = {.bus_sum = 185.881, .nhalves = 2, .min_bandwidth = -1};
    FILE *f = open_text();

    (void)state;
    kl_perf_print_header(f, &c, devices, 2);
    kl_perf_print_row(f, &row);
    kl_perf_print_half(f, &c, &out);
    kl_perf_print_half(f, &c, &in);
    kl_perf_print_end(f, &c, 0);
    kl_perf_print_footer(f, &c, &s);
    expect_text(f, "# NCCL " KL_NCCL_DEFAULT_TEXT ": algorithms and channels are those that this release chooses\n"
                   "# nccl-headers=23203 nccl-library=23203\n"
                   "# Collective test starting: all_reduce_perf\n"
                   "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg "
                   "iters: 1 validation: 1 graph: 0\n"
                   "#\n"
                   "# Using devices\n"
                   "#  Rank  0 Group  0 Pid  23456 on    machine device  0 [0x00] host CPU\n"
                   "#  Rank  1 Group  0 Pid  23456 on    machine device  1 [0x01] host CPU\n"
                   "#\n"
                   "#                                                              out-of-place                       "
                   "in-place          \n"
                   "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
                   "algbw   busbw #wrong\n"
                   "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
                   "(GB/s)  (GB/s)       \n"
                   "           8             2     float     sum      -1    23.94    0.00  123.46      0    123.5  "
                   "1234.50    0.00     17\n"
                   "# Out of bounds values : 0 OK\n"
                   "# Avg bus bandwidth    : 92.9405 \n"
                   "#\n"
                   "# Collective test concluded: all_reduce_perf\n");
}

static void steps_and_cpu_time_are_named(void **state)
{
    struct kl_perf_config c = {
        .coll = &kl_colls[KL_BROADCAST], .step_bytes = 1 << 20, .cpu_time = 1, .blocking = 1, .parallel_init = 1};
    FILE *f = open_text();

    (void)state;
    kl_perf_print_header(f, &c, NULL, 0);
    fclose(f);
    assert_non_null(strstr(text, "step: 1048576(bytes)"));
    assert_non_null(strstr(text, "    root  cputime   algbw   busbw #wrong  cputime"));
    assert_non_null(strstr(text, "# Blocking Enabled"));
    assert_non_null(strstr(text, "# Parallel Init Enabled"));
}

static const struct half_case {
    struct kl_perf_half half;
    const char *text;
} half_cases[] = {
    {{.time_us = 0.125}, "     0.12    0.00    0.00      0"},
    {{.time_us = 99.994}, "    99.99    0.00    0.00      0"},
    {{.time_us = 9999.94}, "   9999.9    0.00    0.00      0"},
    {{.time_us = 1234567.8}, "  1234568    0.00    0.00      0"},
    {{.time_us = 1, .wrong = KL_PERF_UNCHECKED}, "     1.00    0.00    0.00    N/A"},
    {{.time_us = 1, .wrong = 33554432}, "     1.00    0.00    0.00  3.35544e+07"},
};

static void numbers_keep_their_places(void **state)
{
    struct kl_perf_config c = {0};

    (void)state;
    FOR_EACH_CASE(h, half_cases)
    {
        FILE *f = open_text();

        kl_perf_print_half(f, &c, &h->half);
        expect_text(f, h->text);
    }
}

static void the_time_of_day_ends_a_row(void **state)
{
    struct kl_perf_config c = {.coll = &kl_colls[KL_ALL_REDUCE], .timestamps = 1, .graph_launches = 7};
    FILE *f = open_text();

    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    kl_perf_print_header(f, &c, NULL, 0);
    kl_perf_print_end(f, &c, 86399);
    fclose(f);
    assert_non_null(strstr(text, " graph: 7\n"));
    assert_non_null(strstr(text, "#wrong  timestamp          \n"));
    assert_non_null(strstr(text, "  1970-01-01 23:59:59\n"));
}

/* Each column name ends where its numbers end. */
static void iteration_columns_line_up(void **state)
{
    struct kl_perf_config c = {.coll = &kl_colls[KL_ALL_REDUCE], .per_iteration = 1};
    struct kl_perf_row row = {.type = "float", .op = "sum"};
    struct kl_perf_half half = {.time_us = 10, .spread = {.min = 1, .max = 12345, .p99 = 123, .cv_percent = 7.5}};
    FILE *f = open_text();

    (void)state;
    kl_perf_print_header(f, &c, NULL, 0);
    kl_perf_print_row(f, &row);
    kl_perf_print_half(f, &c, &half);
    kl_perf_print_half(f, &c, &half);
    kl_perf_print_end(f, &c, 0);
    fclose(f);
    char *names = strstr(text, "#       size"), *units = strchr(names, '\n') + 1, *numbers = strchr(units, '\n') + 1;
    assert_int_equal(units - names, numbers - units);
    assert_int_equal((size_t)(numbers - units), strlen(numbers));
    for (const char *name = names; (name = strstr(name, "i_")); name += 2) {
        size_t end = (size_t)(name - names) + strcspn(name, " \n");
        assert_true(numbers[end - 1] != ' ' && (numbers[end] == ' ' || numbers[end] == '\n'));
    }
    assert_non_null(strstr(numbers, "     1.00    12345    123.0    7.50\n"));
}

static void the_footer_judges(void **state)
{
    struct kl_perf_config c = {.coll = &kl_colls[KL_ALL_REDUCE]};
    struct kl_perf_summary s = {.wrong = 3, .bus_sum = 18, .nhalves = 2, .min_bandwidth = 10};
    FILE *f = open_text();

    (void)state;
    assert_false(kl_perf_too_slow(&s)); /* 9 is 90 % of 10 */
    kl_perf_print_footer(f, &c, &s);
    fclose(f);
    assert_non_null(strstr(text, "# Out of bounds values : 3 FAILED\n"));
    assert_non_null(strstr(text, "# Avg bus bandwidth    : 9 OK\n"));
    s.bus_sum = 17.9;
    assert_true(kl_perf_too_slow(&s));
    f = open_text();
    kl_perf_print_footer(f, &c, &s);
    fclose(f);
    assert_non_null(strstr(text, " 8.95 FAILED\n"));
    s = (struct kl_perf_summary){.min_bandwidth = -1};
    assert_false(kl_perf_too_slow(&s)); /* nothing measured, nothing asked for */
    assert_true(kl_perf_mean_bandwidth(&s) == 0);
}

static void spreads_are_computed(void **state)
{
    double hundred[100], one[] = {5}, two[] = {3, 1};

    (void)state;
    for (int i = 0; i < 100; i++) hundred[i] = (i * 37) % 100 + 1; /* 1 to 100, mixed */
    struct kl_perf_spread s = kl_perf_spread(hundred, 100);
    assert_true(s.min == 1 && s.max == 100 && s.p50 == 50 && s.p95 == 95 && s.p99 == 99);
    assert_true(fabs(s.mean - 50.5) < 1e-9 && fabs(s.stdev - 28.866070047722118) < 1e-9);
    assert_true(fabs(s.cv_percent - 57.16053474796459) < 1e-9);
    s = kl_perf_spread(one, 1);
    assert_true(s.min == 5 && s.p50 == 5 && s.p99 == 5 && s.stdev == 0);
    s = kl_perf_spread(two, 2);
    assert_true(s.min == 1 && s.max == 3 && s.p50 == 1 && s.p99 == 3 && s.mean == 2 && s.stdev == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_looks_like_that_of_nccl_tests),
        cmocka_unit_test(steps_and_cpu_time_are_named),
        cmocka_unit_test(numbers_keep_their_places),
        cmocka_unit_test(the_time_of_day_ends_a_row),
        cmocka_unit_test(iteration_columns_line_up),
        cmocka_unit_test(the_footer_judges),
        cmocka_unit_test(spreads_are_computed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(text);
    return failed;
}
