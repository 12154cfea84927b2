/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include "tests/kolo_test.h"

static uint32_t tries_in(struct kl_backoff *s, uint32_t chances, bool useful)
{
    uint32_t tries = 0;

    for (uint32_t i = 0; i < chances; i++) {
        if (!kl_backoff_due(s)) continue;
        kl_backoff_record(s, useful);
        tries++;
    }
    return tries;
}

static void what_is_of_use_is_tried_each_time(void **state)
{
    struct kl_backoff s = {0};

    (void)state;
    assert_int_equal(tries_in(&s, 100, true), 100);
}

/* Attempts at opportunities 1, 1 + 2, 1 + 2 + 4, ... */
static void failures_are_retried_after_ever_longer_pauses(void **state)
{
    struct kl_backoff s = {0};

    (void)state;
    assert_int_equal(tries_in(&s, 127, false), 7);
    assert_int_equal(tries_in(&s, 10 * (KL_BACKOFF_SKIPPED_MAX + 1), false), 10);
}

static void one_that_is_of_use_ends_the_pauses(void **state)
{
    struct kl_backoff s = {0};

    (void)state;
    tries_in(&s, 127, false);
    while (!kl_backoff_due(&s)) {
    }
    kl_backoff_record(&s, true);
    assert_int_equal(tries_in(&s, 100, true), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_of_use_is_tried_each_time),
        cmocka_unit_test(failures_are_retried_after_ever_longer_pauses),
        cmocka_unit_test(one_that_is_of_use_ends_the_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
