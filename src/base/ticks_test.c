/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ticks.h"

#include "tests/kolo_test.h"

static uint64_t between(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low - value : value > high ? value - high : 0;
}

static void ticks_tell_the_time(void **state)
{
    const uint64_t error_ns = kl_ticks_counted ? 1000000 : 20000000;
    uint64_t before = kl_now_ns(), ticks = kl_ticks(), after = kl_now_ns();

    (void)state;
    while (kl_now_ns() - after < 20000000) continue; /* long enough for an accurate scale */
    struct kl_ticks_scale scale = kl_ticks_scale();
    assert_in_range(between(kl_ticks_ns(&scale, ticks), before, after), 0, error_ns);
}

static void ticks_do_not_go_back(void **state)
{
    uint64_t last = kl_ticks();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = kl_ticks();
        assert_true(now >= last);
        last = now;
    }
}

static void what_was_before_the_beginning_is_the_beginning(void **state)
{
    struct kl_ticks_scale scale = {.ticks = 1000, .ns = 50, .ns_per_tick = 0.5};

    (void)state;
    assert_int_equal(kl_ticks_ns(&scale, 0), 50);
    assert_int_equal(kl_ticks_ns(&scale, 1000), 50);
    assert_int_equal(kl_ticks_ns(&scale, 1100), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_tell_the_time),
        cmocka_unit_test(ticks_do_not_go_back),
        cmocka_unit_test(what_was_before_the_beginning_is_the_beginning),
    };

    kl_ticks_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
