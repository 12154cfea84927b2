/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "tests/kolo_test.h"

static const struct {
    const char *text;
    bool ok;
    int64_t value;
} int_cases[] = {
    {"0", true, 0},
    {"16", true, 16},
    {"-2", true, -2},
    {"+3", true, 3},
    {"0x1f", true, 31},
    {"-0x10", true, -16},
    {"010", true, 8},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"", false, 0},
    {"-", false, 0},
    {"--1", false, 0},
    {"+-1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"- 1", false, 0},
    {"1.5", false, 0},
    {"4K", false, 0},
    {"08", false, 0},
    {"0x", false, 0},
    {"many", false, 0},
};

static void integers(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, int_cases)
    {
        int64_t value = 12345;

        expect_case(c->text, kl_parse_int(c->text, &value) == c->ok);
        expect_case(c->text, value == (c->ok ? c->value : 12345)); /* untouched on failure */
    }
}

static const struct {
    const char *text;
    bool ok;
    uint64_t bytes;
} size_cases[] = {
    {"0", true, 0},
    {"4096", true, 4096},
    {"0x1000", true, 4096},
    {"4K", true, 4096},
    {"4k", true, 4096},
    {"1M", true, 1 << 20},
    {"3G", true, UINT64_C(3) << 30},
    {"0K", true, 0},
    {"0x10K", true, 16384},
    {"9223372036854775807", true, INT64_MAX},
    {"8589934591G", true, UINT64_C(8589934591) << 30},
    {"9223372036854775808", false, 0},
    {"8589934592G", false, 0},
    {"18446744073709551616", false, 0},
    {"", false, 0},
    {"K", false, 0},
    {"-1", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 K", false, 0},
    {"1KB", true, 1024},
    {"64kb", true, 65536},
    {"1GB", true, 1 << 30},
    {"2MiB", true, 2 << 20},
    {"512B", true, 512},
    {"1.5M", true, 3 << 19},
    {"1.5K", true, 1536},
    {"0.25GB", true, 1 << 28},
    {"010.5K", true, 10752},
    {"1.3K", true, 1331},
    {"8589934591.99G", true, (UINT64_C(8589934591) << 30) + 1063004406},
    {"1T", false, 0},
    {"1KBs", false, 0},
    {"1BK", false, 0},
    {"1iB", false, 0},
    {"1KK", false, 0},
    {"1.K", false, 0},
    {"1.5", false, 0}, /* not a whole number of bytes */
    {"1.5B", false, 0},
    {"0x1.8K", false, 0},
    {"1.5.5K", false, 0},
    {".5K", false, 0},
};

static void sizes(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, size_cases)
    {
        uint64_t bytes = 12345;

        expect_case(c->text, kl_parse_size(c->text, &bytes) == c->ok);
        expect_case(c->text, bytes == (c->ok ? c->bytes : 12345));
    }
}

static const struct {
    const char *text;
    bool ok, value;
} bool_cases[] = {
    {"0", true, false},   {"1", true, true},     {"on", true, true},   {"off", true, false}, {"ON", true, true},
    {"Off", true, false}, {"", false, false},    {"2", false, false},  {"-1", false, false}, {"true", false, false},
    {"o", false, false},  {"onn", false, false}, {" 1", false, false}, {"01", false, false},
};

static void booleans(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, bool_cases)
    {
        bool value = !c->value;

        expect_case(c->text, kl_parse_bool(c->text, &value) == c->ok);
        expect_case(c->text, value == (c->ok ? c->value : !c->value));
    }
}

static const char *const fruits[] = {"APPLE", "PEAR", "PLUM", NULL};

static const struct {
    const char *text;
    int index; /* -1: refused */
} choice_cases[] = {
    {"APPLE", 0}, {"pear", 1}, {"Plum", 2}, {"", -1}, {"PLU", -1}, {"PLUMS", -1}, {"0", -1}, {"APPLE,PEAR", -1},
};

static void choices(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, choice_cases)
    {
        int index = 77;

        expect_case(c->text, kl_parse_choice(c->text, fruits, &index) == (c->index >= 0));
        expect_case(c->text, index == (c->index >= 0 ? c->index : 77));
    }
}

static const struct {
    const char *text;
    bool ok;
    uint32_t bits;
} list_cases[] = {
    {"APPLE", true, 1},       {"plum,APPLE", true, 5},
    {"APPLE,APPLE", true, 1}, {"ALL", true, 7},
    {"all,PEAR", true, 7},    {"^PEAR", true, 5},
    {"^APPLE,PLUM", true, 2}, {"^ALL", true, 0},
    {"^", true, 7},           {"", true, 0},
    {"APPLE,", true, 1},      {",,PEAR", true, 2},
    {"APPLE,FIG", false, 0},  {"APPLE PEAR", false, 0},
    {"PEAR,^PLUM", false, 0}, {"^^PEAR", false, 0},
    {"ALLE", false, 0},
};

static void lists(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, list_cases)
    {
        uint32_t bits = 12345;

        expect_case(c->text, kl_parse_list(c->text, fruits, &bits) == c->ok);
        expect_case(c->text, bits == (c->ok ? c->bits : 12345));
    }
}

static void hexadecimal_ids(void **state)
{
    (void)state;
    assert_int_equal(kl_parse_hex("0x10de"), 0x10de);
    assert_int_equal(kl_parse_hex("10DE"), 0x10de);
    assert_int_equal(kl_parse_hex("ffffffffffffffff"), UINT64_MAX);
    assert_int_equal(kl_parse_hex("1f/2"), 0x1f);
    assert_int_equal(kl_parse_hex("none"), 0);
    assert_int_equal(kl_parse_hex(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers), cmocka_unit_test(sizes), cmocka_unit_test(booleans),
        cmocka_unit_test(choices),  cmocka_unit_test(lists), cmocka_unit_test(hexadecimal_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
