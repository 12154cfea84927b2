/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "tests/kolo_test.h"

static void pieces_follow_each_other(void **state)
{
    char buffer[16];
    struct kl_text t = kl_text_in(buffer, sizeof buffer);

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
    struct kl_text t = kl_text_in(buffer, 8);

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

static void sizes_and_times_have_units(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"0 B", 0},
                 {"1000 B", 1000},
                 {"1025 B", 1025},
                 {"1 KiB", 1024},
                 {"1536 B", 1536},
                 {"64 MiB", 64 << 20},
                 {"2049 KiB", 2049 << 10},
                 {"3 TiB", (int64_t)3 << 40},
                 {"1024 TiB", (int64_t)1 << 50}};
    static const struct {
        const char *text;
        double us;
    } times[] = {{"0.00 us", 0},         {"1.50 us", 1.5},   {"28.8 us", 28.8},  {"999 us", 999.4},
                 {"1.00 ms", 999.6},     {"45.3 ms", 45267}, {"127 ms", 127030}, {"2.05 s", 2.05e6},
                 {"3600 s", 3600 * 1e6}, {"10.0 us", 9.996}};

    (void)state;
    FOR_EACH_CASE(c, sizes)
    {
        char text[32];
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_text_add_size(&t, c->bytes);
        assert_string_equal(text, c->text);
    }
    FOR_EACH_CASE(c, times)
    {
        char text[32];
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_text_add_time(&t, c->us);
        assert_string_equal(text, c->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(what_does_not_fit_is_cut),
        cmocka_unit_test(sizes_and_times_have_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
