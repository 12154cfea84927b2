/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/perf_config.h"

#include <stdlib.h>

enum { MAX_WORDS = 16, WHY = 256 };

static int configure(const char *line, struct kl_perf_config *c, char *why)
{
    static char text[256], command[] = "perf";
    char *words[MAX_WORDS] = {command};
    int n = 1;

    snprintf(text, sizeof text, "%s", line);
    for (char *w = strtok(text, " "); w && n < MAX_WORDS; w = strtok(NULL, " ")) words[n++] = w;
    return kl_perf_configure(n, words, c, why, WHY);
}

static const struct wrong_case {
    const char *line, *why;
} wrong_cases[] = {
    {"", "which collective?"},
    {"-b 8", "which collective?"},
    {"all_reduce a100.xml", "\"a100.xml\" is no operand; use --topo a100.xml"},
    {"allreduced", "no collective \"allreduced\""},
    {"all_reduce reduce", "one collective at a time: all_reduce or reduce"},
    {"all_reduce -d floaty", "-d: no data type \"floaty\""},
    {"all_reduce -o mul", "-o: no operation \"mul\""},
    {"reduce -r x", "-r: \"x\" is neither"},
    {"all_reduce -a 4", "-a: \"4\""},
    {"all_reduce -b 2", "-b 2 is below one element of float (4 bytes)"},
    {"all_reduce -b 4 -d all", "-b 4 is below one element of int64 (8 bytes)"},
    {"all_reduce -b 0", "-b 0 is below one element"},
    {"all_reduce -b 8M -e 1M", "-b 8388608 is above -e 1048576"},
    {"all_reduce -b 64M", "is above -e 33554432"},
    {"all_reduce -b 8 -i 0", "-i 0 never gets"},
    {"all_reduce --np 3 --hosts 2", "--np 3 does not divide over --hosts 2"},
    {"all_reduce --hosts 2 --link-rate 10G", "--link-rate is for links of network namespaces: add --netns"},
    {"all_reduce --np 65536 -t 4096 -g 4096", "more than 1048576 ranks"},
    {"all_reduce -R 3", "-R"},
    {"all_reduce -G 1 -z 1", "-z waits after each operation, but -G issues all of them at once"},
    {"all_reduce --cudagraph=2 -I", "-I times each iteration, but -G launches all of them at once"},
    {"all_reduce -y 1 -g 2", "-y 1: each thread has one default stream, so -g must be 1"},
    {"all_reduce -y 1 --inline", "-y 1: the default stream does not run operations inside the call"},
    {"all_reduce -y 1 -G 1", "-y 1: the default stream cannot be captured, as -G would"},
    {"all_reduce -x 0", "-x has no meaning here"},
    {"all_reduce -D 1", "-D has no meaning here"},
    {"all_reduce -V 1", "-V has no meaning here"},
    {"all_reduce -n 0", "-n: \"0\""},
    {"all_reduce -z 4", "-z: \"4\""},
    {"all_reduce -Q", "unknown option -Q"},
    {"hypercube -m 2", "hypercube"},
};

static void wrong_usage_has_one_reason(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, wrong_cases)
    {
        struct kl_perf_config config;
        char why[WHY] = "";

        expect_case(c->line, configure(c->line, &config, why) == -1);
        expect_case(c->line, strstr(why, c->why) != NULL);
        expect_case(c->line, strchr(why, '\n') == NULL);
    }
}

static void defaults_are_those_of_nccl_tests(void **state)
{
    struct kl_perf_config c;
    char why[WHY];

    (void)state;
    assert_int_equal(configure("all_reduce", &c, why), 0);
    assert_true(c.coll == &kl_colls[KL_ALL_REDUCE]);
    assert_int_equal(c.min_bytes, 32 << 20);
    assert_int_equal(c.max_bytes, 32 << 20);
    assert_int_equal(c.step_bytes, 1 << 20);
    assert_true(c.step_factor <= 1);
    assert_int_equal(c.iterations, 20);
    assert_int_equal(c.warmups, 1);
    assert_int_equal(c.aggregated, 1);
    assert_int_equal(c.checks, 1);
    assert_int_equal(c.nthreads * c.ndevices, 1);
    assert_true(c.ntypes == 1 && c.types[0] == ncclFloat && c.nops == 1 && c.ops[0] == ncclSum);
    assert_int_equal(c.root, 0);
    assert_int_equal(c.average, KL_AVERAGE_MEAN);
    assert_int_equal(c.parallel_init + c.blocking + c.registration + c.misalign + c.per_iteration + c.cpu_time, 0);
}

static void options_are_those_of_nccl_tests(void **state)
{
    struct kl_perf_config c;
    char why[WHY];

    (void)state;
    assert_int_equal(configure("-t 2 -g 3 -b 8 -e 1G -f 2 -n 5 -m 4 -w 0 -p 1", &c, why), -1); /* no collective */
    assert_int_equal(configure("-t 2 reduce -g 3 -b 8 -e 1G -f 2 -n 5 -m 4", &c, why), 0);
    assert_true(c.nthreads == 2 && c.ndevices == 3 && c.min_bytes == 8 && c.max_bytes == 1 << 30);
    assert_true(c.step_factor == 2 && c.iterations == 5 && c.aggregated == 4);
    assert_int_equal(configure("reduce -w 0 -p 1 -c 0 -o all -d all -r all -z 1", &c, why), 0);
    assert_true(c.warmups == 0 && c.parallel_init == 1 && c.checks == 0 && c.blocking == 1);
    assert_true(c.nops == ncclNumOps && c.ntypes == ncclNumTypes && c.root == -1);
    assert_int_equal(configure("reduce --op=prod --datatype BFLOAT16 --root 1 --average max -I -T 5", &c, why), 0);
    assert_true(c.ops[0] == ncclProd && c.types[0] == ncclBfloat16 && c.root == 1 && c.average == KL_AVERAGE_MAX);
    assert_true(c.per_iteration == 1 && c.timeout_ms == 5000);
    assert_int_equal(configure("--minbytes 1K --maxbytes 1M --stepbytes 1K --iters 1 --check 2 all_gather", &c, why),
                     0);
    assert_true(c.min_bytes == 1024 && c.max_bytes == 1 << 20 && c.step_bytes == 1024 && c.checks == 2);
    assert_int_equal(configure("all_gather -o all -r all", &c, why), 0);
    assert_true(c.nops == 1 && c.root == 0); /* has neither */
    assert_int_equal(configure("barrier -b 1 -e 1M", &c, why), 0);
    assert_int_equal(kl_perf_next_size(&c, c.min_bytes), 0); /* one line */
    assert_int_equal(configure("--help", &c, why), 0);
    assert_true(c.help);
}

static const struct list_case {
    const char *line;
    uint64_t sizes[6]; /* ends with 0 */
} list_cases[] = {
    {"-b 8 -e 8", {8}},
    {"-b 8 -e 64 -f 2", {8, 16, 32, 64}},
    {"-b 8 -e 100 -f 3", {8, 24, 72}},
    {"-b 1K -e 4K -i 1K", {1024, 2048, 3072, 4096}},
    {"-b 1K -e 3000 -i 1K", {1024, 2048}},
    {"-b 8 -e 64 -f 1 -i 28", {8, 36, 64}},
    {"-b 4611686018427387903 -e 4611686018427387903 -f 8", {4611686018427387903}},
};

static void sizes_are_listed(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, list_cases)
    {
        struct kl_perf_config config;
        char why[WHY], line[128];
        uint64_t bytes;
        int i = 0;

        snprintf(line, sizeof line, "all_reduce %s", c->line);
        expect_case(c->line, configure(line, &config, why) == 0);
        for (bytes = config.min_bytes; bytes; bytes = kl_perf_next_size(&config, bytes))
            expect_case(c->line, i < 6 && bytes == c->sizes[i++]);
        expect_case(c->line, !c->sizes[i]);
    }
}

static void ranks_are_checked(void **state)
{
    struct kl_perf_config c;
    char why[WHY] = "";

    (void)state;
    assert_int_equal(configure("reduce -r 3", &c, why), 0);
    assert_int_equal(kl_perf_check_ranks(&c, 4, why, sizeof why), 0);
    assert_int_equal(kl_perf_check_ranks(&c, 3, why, sizeof why), -1);
    assert_string_equal(why, "-r 3: there are 3 ranks, 0 to 2");
    assert_int_equal(configure("all_reduce -r 3", &c, why), 0); /* no root to speak of */
    assert_int_equal(kl_perf_check_ranks(&c, 2, why, sizeof why), 0);
    assert_int_equal(configure("hypercube", &c, why), 0);
    assert_int_equal(kl_perf_check_ranks(&c, 8, why, sizeof why), 0);
    assert_int_equal(kl_perf_check_ranks(&c, 6, why, sizeof why), -1);
}

static void help_names_everything(void **state)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);

    (void)state;
    kl_perf_print_help(f);
    fclose(f);
    for (int i = 0; i < KL_NCOLLS; i++) assert_non_null(strstr(text, kl_colls[i].name));
    assert_non_null(strstr(text, "-b, --minbytes BYTES"));
    assert_non_null(strstr(text, "--hosts N"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_has_one_reason),
        cmocka_unit_test(defaults_are_those_of_nccl_tests),
        cmocka_unit_test(options_are_those_of_nccl_tests),
        cmocka_unit_test(sizes_are_listed),
        cmocka_unit_test(ranks_are_checked),
        cmocka_unit_test(help_names_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
