/* SPDX-License-Identifier: Apache-2.0 */
#include "os/affinity.h"

#include "tests/kolo_test.h"

#include <sched.h>

static struct kl_cpuset set_of(const char *list)
{
    struct kl_cpuset set;

    assert_true(kl_cpuset_parse_list(list, &set));
    return set;
}

static void the_mask_is_the_kernels(void **state)
{
    struct kl_cpuset set;
    cpu_set_t kernels;

    (void)state;
    memset(&set, 0xff, sizeof set);
    assert_int_equal(kl_affinity_get(&set), ncclSuccess);
    assert_int_equal(sched_getaffinity(0, sizeof kernels, &kernels), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        assert_int_equal(kl_cpuset_has(&set, cpu), CPU_ISSET(cpu, &kernels) != 0);
    assert_int_equal(kl_cpuset_next(&set, CPU_SETSIZE), -1);
    assert_int_equal(kl_affinity_count(), CPU_COUNT(&kernels));
    assert_true(kl_cpuset_has(&set, sched_getcpu()));
}

static void a_thread_is_pinned_and_released(void **state)
{
    struct kl_cpuset all, before, now, one = {0};

    (void)state;
    assert_int_equal(kl_affinity_get(&all), ncclSuccess);
    for (int cpu = -1; (cpu = kl_cpuset_next(&all, cpu + 1)) >= 0;) {
        one = (struct kl_cpuset){0};
        kl_cpuset_add(&one, cpu);
        assert_int_equal(kl_affinity_pin(&one, &before), ncclSuccess);
        assert_memory_equal(&before, &all, sizeof(struct kl_cpuset));
        assert_int_equal(sched_getcpu(), cpu);
        assert_int_equal(kl_affinity_count(), 1);
        assert_int_equal(kl_affinity_pin(&before, NULL), ncclSuccess);
        assert_int_equal(kl_affinity_get(&now), ncclSuccess);
        assert_memory_equal(&now, &all, sizeof(struct kl_cpuset));
    }
}

static void impossible_sets_are_refused(void **state)
{
    struct kl_cpuset nobodys = set_of("8191"), none = {0}, before = {{77}}, all, now;

    (void)state;
    assert_int_equal(kl_affinity_get(&all), ncclSuccess);
    assert_int_equal(kl_affinity_pin(&nobodys, &before), ncclSystemError);
    assert_int_equal(kl_affinity_pin(&none, &before), ncclInvalidArgument);
    assert_int_equal(before.words[0], 77);
    assert_int_equal(kl_affinity_get(&now), ncclSuccess);
    assert_memory_equal(&now, &all, sizeof(struct kl_cpuset));

    kl_cpuset_add(&nobodys, kl_cpuset_next(&all, 0)); /* missing CPUs are ignored beside existing ones */
    assert_int_equal(kl_affinity_pin(&nobodys, &before), ncclSuccess);
    assert_int_equal(kl_affinity_count(), 1);
    assert_int_equal(kl_affinity_pin(&before, NULL), ncclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_is_the_kernels),
        cmocka_unit_test(a_thread_is_pinned_and_released),
        cmocka_unit_test(impossible_sets_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
