/* SPDX-License-Identifier: Apache-2.0 */
#include "base/seldom.h"

#include "tests/kolo_test.h"

static uint32_t tries_in(struct kl_seldom *s, uint32_t chances, bool useful)
{
    uint32_t tries = 0;

    for (uint32_t i = 0; i < chances; i++) {
        if (!kl_seldom_due(s)) continue;
        kl_seldom_tried(s, useful);
        tries++;
    }
    return tries;
}

static void what_is_of_use_is_tried_each_time(void **state)
{
    struct kl_seldom s = {0};

    (void)state;
    assert_int_equal(tries_in(&s, 100, true), 100);
}

/* Attempts at opportunities 1, 1 + 2, 1 + 2 + 4, ... */
static void what_is_not_is_tried_after_ever_longer_pauses(void **state)
{
    struct kl_seldom s = {0};

    (void)state;
    assert_int_equal(tries_in(&s, 127, false), 7);
    assert_int_equal(tries_in(&s, 10 * (KL_SELDOM_MOST + 1), false), 10);
}

static void one_that_is_of_use_ends_the_pauses(void **state)
{
    struct kl_seldom s = {0};

    (void)state;
    tries_in(&s, 127, false);
    while (!kl_seldom_due(&s)) {
    }
    kl_seldom_tried(&s, true);
    assert_int_equal(tries_in(&s, 100, true), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_of_use_is_tried_each_time),
        cmocka_unit_test(what_is_not_is_tried_after_ever_longer_pauses),
        cmocka_unit_test(one_that_is_of_use_ends_the_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
