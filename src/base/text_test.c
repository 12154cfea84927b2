/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "tests/kolo_test.h"

static void pieces_follow_each_other(void **state)
{
    char buffer[16];
    struct kl_text t = kl_text_over(buffer, sizeof buffer);

    (void)state;
    assert_string_equal(buffer, "");
    kl_text_add(&t, "%s", "");
    kl_text_add(&t, "ring %d", 7);
    kl_text_add(&t, "%s", ": 1 2 3");
    assert_string_equal(buffer, "ring 7: 1 2 3");
    assert_int_equal(t.length, 13);
    assert_false(t.cut);
}

static void what_does_not_fit_is_cut(void **state)
{
    char buffer[] = "????????x";
    struct kl_text t = kl_text_over(buffer, 8);

    (void)state;
    kl_text_add(&t, "1234567"); /* fits exactly */
    assert_false(t.cut);
    kl_text_add(&t, "8");
    assert_true(t.cut);
    assert_string_equal(buffer, "1234567");
    kl_text_add(&t, "%s", "a longer piece than there ever was room for");
    assert_string_equal(buffer, "1234567");
    assert_int_equal(t.length, 7);
    assert_int_equal(buffer[8], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(what_does_not_fit_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
