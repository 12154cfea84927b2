/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/call_times.h"

#include "tests/kolo_test.h"

static void quantiles_are_at_most_an_eighth_too_large(void **state)
{
    struct kl_call_times t = {.calls = 0};

    (void)state;
    assert_int_equal(kl_call_times_quantile(&t, 0.5), 0);
    for (uint64_t ns = 1; ns <= 100000; ns++) kl_call_times_add(&t, ns);
    for (int percent = 1; percent <= 100; percent++) {
        const uint64_t exact = (uint64_t)percent * 1000, found = kl_call_times_quantile(&t, percent / 100.0);
        assert_in_range(found, exact, exact + exact / 8);
    }
    assert_int_equal(t.calls, 100000);
    assert_int_equal(t.sum_ns, UINT64_C(5000050000));
}

static void the_longest_call_is_exact(void **state)
{
    struct kl_call_times t = {.calls = 0};

    (void)state;
    kl_call_times_add(&t, 0);
    kl_call_times_add(&t, UINT64_C(1) << 62);
    assert_int_equal(t.most_ns, UINT64_C(1) << 62);
    assert_int_equal(kl_call_times_quantile(&t, 0.5), 0);
    assert_true(kl_call_times_quantile(&t, 1) <= UINT64_C(1) << 62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_at_most_an_eighth_too_large),
        cmocka_unit_test(the_longest_call_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
