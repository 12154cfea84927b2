/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/first_try.h"

#include "tests/kolo_test.h"

/* How many of `n` operations are asked about, by ranks that decline. */
static int asked(struct kl_first_try *f, int n)
{
    int times = 0;

    for (int i = 0; i < n; i++) {
        if (kl_first_try_due(f)) times++, kl_first_try_declined(f);
        assert_false(f->declined && kl_first_try_due(f));
        kl_first_try_ended(f, false);
    }
    return times;
}

static void those_who_decline_are_asked_more_and_more_seldom(void **state)
{
    struct kl_first_try f = {0};

    (void)state;
    assert_int_equal(asked(&f, 1), 1);
    assert_int_equal(asked(&f, 1), 0);
    assert_int_equal(asked(&f, 1), 1);
    assert_int_equal(asked(&f, 3), 0);
    assert_int_equal(asked(&f, 1), 1);
    asked(&f, 2000);
    assert_int_equal(asked(&f, 10 * (KL_FIRST_TRY_PAUSE + 1)), 10);
}

static void one_that_is_carried_out_ends_the_pauses(void **state)
{
    struct kl_first_try f = {0};

    (void)state;
    asked(&f, 1000);
    while (!kl_first_try_due(&f)) kl_first_try_ended(&f, false);
    for (int i = 0; i < 5; i++) {
        kl_first_try_ended(&f, true);
        assert_true(kl_first_try_due(&f));
    }
    assert_int_equal(asked(&f, 3), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_who_decline_are_asked_more_and_more_seldom),
        cmocka_unit_test(one_that_is_carried_out_ends_the_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
