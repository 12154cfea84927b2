/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_file.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char machine[] = "abacus, 2 CPUs";

/* A line at `start` us and `per_kib` for each KiB, in whole nanoseconds, as they are kept. */
static void measure(struct kl_tuning_measured *m, int func, int algo, int ranks, float start, float per_kib)
{
    for (int s = 0; s < KL_MEASURED_SIZES; s++)
        m->us[func][algo][ranks][s] =
            (float)(long)(1000 * (start + per_kib * (float)kl_measured_bytes[s] / 1024)) / 1000;
}

static struct kl_tuning_measured some(void)
{
    struct kl_tuning_measured m = {0};

    for (int r = 0; r < KL_MEASURED_RANKS; r++) {
        measure(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, r, 4 * (float)(r + 1), 0.25f);
        measure(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_FLAT, r, 1, 2);
    }
    return m;
}

static void lines_are_straight(void **state)
{
    struct kl_tuning_measured m = some();

    (void)state;
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 2, 0), 4, 0.01);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 2, 1 << 20), 4 + 256, 0.1);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 2, 1 << 30), 4 + 262144, 100);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 3, 8), 6, 0.01);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 16, 8), 20, 0.01);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_TREE, 2, 8), 0, 0);
    assert_float_equal(kl_tuning_measured_us(&m, KL_FUNC_REDUCE, KL_ALGO_RING, 2, 8), 0, 0);
}

static void what_is_printed_is_read(void **state)
{
    struct kl_tuning_measured m = some(), read;
    char text[KL_MEASURED_TEXT];
    const char *why;
    size_t bytes = kl_tuning_measured_print(&m, machine, text, sizeof text);

    (void)state;
    assert_true(bytes > 0);
    assert_int_equal(kl_tuning_measured_parse(text, bytes, machine, &read, &why), ncclSuccess);
    assert_null(why);
    assert_int_equal(kl_tuning_measured_mark(&m), kl_tuning_measured_mark(&read));
    assert_int_equal(kl_tuning_measured_print(&m, machine, text, bytes), 0);
}

static void what_is_damaged_is_refused(void **state)
{
    struct kl_tuning_measured m = some(), read;
    char text[KL_MEASURED_TEXT], damaged[KL_MEASURED_TEXT];
    const char *why;
    size_t bytes = kl_tuning_measured_print(&m, machine, text, sizeof text);

    (void)state;
    for (size_t i = 0; i < bytes; i++) {
        memcpy(damaged, text, bytes);
        damaged[i] ^= 1;
        assert_int_equal(kl_tuning_measured_parse(damaged, bytes, machine, &read, &why), ncclInvalidUsage);
        assert_int_equal(kl_tuning_measured_parse(text, i, machine, &read, &why), ncclInvalidUsage);
        assert_non_null(why);
    }
    assert_int_equal(kl_tuning_measured_parse(text, bytes, "abacus, 4 CPUs", &read, &why), ncclInvalidUsage);
}

/* Noise makes a larger operation quicker now and then: times that are read do not fall. */
static void times_do_not_fall(void **state)
{
    struct kl_tuning_measured m = some(), read;
    char text[KL_MEASURED_TEXT];
    const char *why;

    (void)state;
    m.us[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][0][3] = 0.5f;
    size_t bytes = kl_tuning_measured_print(&m, machine, text, sizeof text);
    assert_int_equal(kl_tuning_measured_parse(text, bytes, machine, &read, &why), ncclSuccess);
    assert_true(read.us[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][0][3] >= read.us[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][0][2]);
}

/* ---- the model ---- */

static struct kl_tuning tuned(const struct kl_tuning_constants *constants, int nranks, int nnodes,
                              const struct kl_tuning_measured *measured)
{
    struct kl_graph_facts pci = {.nchannels = 1, .type_intra = KL_PATH_PIX, .bw_intra = 12, .bw_inter = 12};
    struct kl_tuning_input in = {
        .nranks = nranks, .nnodes = nnodes, .max_local_ranks = nranks / nnodes, .min_sm = 90, .max_sm = 90};
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t;

    in.nchannels = 2;
    in.graph[KL_GRAPH_RING] = in.graph[KL_GRAPH_TREE] = pci;
    in.measured = measured;
    assert_int_equal(kl_tuning_compute(constants, &in, &params, &t), ncclSuccess);
    return t;
}

static struct kl_tuning_choice choose(const struct kl_tuning *t, int64_t bytes)
{
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, bytes, ncclFloat, ncclSum);
    struct kl_tuning_choice c;

    assert_int_equal(kl_tuning_choose(t, &op, &c, NULL), ncclSuccess);
    return c;
}

static void the_quickest_measured_is_chosen(void **state)
{
    struct kl_tuning_measured m = some();
    struct kl_tuning t = tuned(&kl_tuning_host, 2, 1, &m);

    (void)state;
    assert_int_equal(choose(&t, 8).algo, KL_ALGO_FLAT);
    assert_float_equal(choose(&t, 8).time, 1.015, 0.01);
    assert_int_equal(choose(&t, 64 << 10).algo, KL_ALGO_RING);
    assert_int_equal(choose(&t, 64 << 10).proto, KL_PROTO_SIMPLE);
    assert_float_equal(choose(&t, 64 << 10).time, 4 + 16, 0.1);
    for (int r = 0; r < KL_MEASURED_RANKS; r++) measure(&m, KL_FUNC_ALL_REDUCE, KL_ALGO_FLAT, r, 50, 2);
    assert_int_equal(choose(&t, 8).algo == KL_ALGO_FLAT,
                     0); /* algorithms without measurements are scaled as the ring */
}

static void measured_times_are_of_one_host_of_cpus(void **state)
{
    struct kl_tuning_measured m = some();
    struct kl_tuning with = tuned(&kl_tuning_host, 8, 2, &m), without = tuned(&kl_tuning_host, 8, 2, NULL);
    struct kl_tuning gpus = tuned(&kl_tuning_reference, 8, 1, &m), plain = tuned(&kl_tuning_reference, 8, 1, NULL);

    (void)state;
    assert_true(choose(&with, 8).time == choose(&without, 8).time);
    assert_true(choose(&gpus, 8).time == choose(&plain, 8).time);
}

static void terms_add_up(void **state)
{
    struct kl_tuning_measured m = some();
    struct kl_tuning t = tuned(&kl_tuning_host, 4, 1, &m);
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, 1 << 20, ncclFloat, ncclSum);
    struct kl_tuning_terms x;

    (void)state;
    for (op.npipe = 1; op.npipe <= 32; op.npipe *= 32)
        for (int a = 0; a < KL_ALGOS; a++) {
            if (kl_tuning_refused(&t, &op, a, KL_PROTO_SIMPLE)) continue;
            kl_tuning_terms(&t, &op, a, KL_PROTO_SIMPLE, &x);
            assert_true(x.measured && x.modelled > 0);
            assert_float_equal(x.latency.base + x.latency.extra + x.correction + x.group + x.transfer + x.fp8, x.time,
                               x.time * 1e-3f);
        }
}

/* ---- the file ---- */

static void a_file_is_replaced_as_a_whole(void **state)
{
    struct kl_tuning_measured m = some(), read;
    char folder[64], path[128], there[160];

    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kolo-tuning-test.%d", getpid());
    snprintf(path, sizeof path, "%s/deep/tuning", folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kl_tuning_file_write(path, &m), ncclSuccess);
        assert_int_equal(kl_tuning_file_read(path, &read), ncclSuccess);
        assert_int_equal(kl_tuning_measured_mark(&m), kl_tuning_measured_mark(&read));
        measure(&m, KL_FUNC_REDUCE, KL_ALGO_RING, 0, 3, 1);
    }
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(kl_tuning_file_read(path, &read), ncclInvalidUsage);
    assert_int_equal(unlink(path), 0);
    snprintf(there, sizeof there, "%s/deep", folder);
    assert_int_equal(rmdir(there), 0); /* nothing beside it was left */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(kl_tuning_file_read(path, &read), ncclSystemError);
    assert_int_equal(kl_tuning_file_write("/proc/nowhere/tuning", &m), ncclSystemError);
}

static void the_place_is_the_users_cache(void **state)
{
    char path[KL_TUNING_PATH];

    (void)state;
    assert_int_equal(kl_tuning_file_path("none", path), ncclInvalidUsage);
    assert_int_equal(kl_tuning_file_path("/some/where", path), ncclSuccess);
    assert_string_equal(path, "/some/where");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    assert_int_equal(kl_tuning_file_path("", path), ncclSuccess);
    assert_memory_equal(path, "/cache/kolo/tuning-", 19);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/ada", 1);
    assert_int_equal(kl_tuning_file_path("", path), ncclSuccess);
    assert_memory_equal(path, "/home/ada/.cache/kolo/tuning-", 29);
    unsetenv("HOME");
    assert_int_equal(kl_tuning_file_path("", path), ncclInvalidUsage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_straight),
        cmocka_unit_test(what_is_printed_is_read),
        cmocka_unit_test(what_is_damaged_is_refused),
        cmocka_unit_test(times_do_not_fall),
        cmocka_unit_test(the_quickest_measured_is_chosen),
        cmocka_unit_test(measured_times_are_of_one_host_of_cpus),
        cmocka_unit_test(terms_add_up),
        cmocka_unit_test(a_file_is_replaced_as_a_whole),
        cmocka_unit_test(the_place_is_the_users_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
