/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cpu_use.h"

#include "tests/kolo_test.h"

static const char text[] = "cpu  0 0 0 0 0 0 0 0 0 0\n"
                           "cpu0 100 20 30 4000 500 6 7 80 9 9\n"
                           "cpu1 1 0 0 9 9 0 0 0 0 0\n"
                           "cpu11 1000 0 0 0 0 0 0 0 0 0\n"
                           "cpu12 1 2 3\n"
                           "intr 5\n";

static void only_the_cpus_that_may_be_used_count(void **state)
{
    static const struct {
        const char *cpus;
        double all; /* -1: not known */
    } cases[] = {{"0", 2.43},     {"1", 0.01}, {"0-1", 2.44}, {"11", 10},
                 {"0,11", 12.43}, {"2", -1},   {"0-2", -1},   {"12", -1}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_cpuset cpus;
        double all = -1;

        assert_true(kl_cpuset_parse_list(c->cpus, &cpus));
        expect_case(c->cpus, kl_cpu_use_parse(text, &cpus, 100, &all) == (c->all >= 0));
        expect_case(c->cpus, all > c->all - 1e-9 && all < c->all + 1e-9);
    }
}

static void others_are_what_is_not_ones_own(void **state)
{
    const struct kl_cpu_use begin = {.all = 100, .own = 2, .known = true}, unknown = {.own = 1};
    struct kl_cpu_use end = {.all = 130, .own = 12, .known = true};

    (void)state;
    assert_true(kl_cpu_use_of_others(&begin, &end, 4, 10) == 0.5);
    assert_true(kl_cpu_use_of_others(&unknown, &end, 4, 10) == 0);
    assert_true(kl_cpu_use_of_others(&begin, &end, 4, 0) == 0);
    end.own = 40; /* ticks are coarse */
    assert_true(kl_cpu_use_of_others(&begin, &end, 4, 10) == 0);
    end.all = 1000;
    assert_true(kl_cpu_use_of_others(&begin, &end, 4, 10) == 1);
}

static void what_this_process_does_is_its_own(void **state)
{
    struct kl_cpu_use begin = kl_cpu_use_now(), end;
    volatile double x = 1;

    (void)state;
    do {
        for (int i = 0; i < 1000000; i++) x = x * 1.0000001 + 1;
        end = kl_cpu_use_now();
    } while (end.own - begin.own < 0.05);
    assert_true(!end.known || end.all >= begin.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_cpus_that_may_be_used_count),
        cmocka_unit_test(others_are_what_is_not_ones_own),
        cmocka_unit_test(what_this_process_does_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
