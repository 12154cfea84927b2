/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param.h"

#include "tests/kolo_test.h"

#include <stdio.h>

static const char *const speeds[] = {"slow", "fast", NULL};
static const char *const sides[] = {"left", "right", "top", NULL};

struct config {
    int64_t count, bytes, decided;
    bool on;
    int speed, unset;
    uint32_t sides;
    char name[8], secret[8], id[8];
};

enum { COUNT, BYTES, DECIDED, ON, SPEED, UNSET, SIDES, NAME, SECRET, ID };

static const struct kl_param rows[] = {
    KL_PARAM_INT(struct config, count, "KOLO_COUNT", KL_OWN, "3", 2, 64, "how many"),
    KL_PARAM_SIZE(struct config, bytes, "KOLO_BYTES", KL_OWN, "8K", 64, 16 << 20, "how large"),
    KL_PARAM_SIZE(struct config, decided, "KOLO_DECIDED", KL_OWN, "-2", 4096, 1 << 30, "how large, or -2"),
    KL_PARAM_BOOL(struct config, on, "KOLO_ON", KL_OWN, "on", "whether"),
    KL_PARAM_ENUM(struct config, speed, "KOLO_SPEED", KL_OWN, "fast", speeds, "how fast"),
    KL_PARAM_ENUM(struct config, unset, "KOLO_UNSET", KL_OWN, "", speeds, "how fast, if at all"),
    KL_PARAM_LIST(struct config, sides, "KOLO_SIDES", KL_OWN, "left,right", sides, "where"),
    KL_PARAM_STRING(struct config, name, "KOLO_NAME", KL_OWN, "", "a name"),
    KL_PARAM_SECRET(struct config, secret, "KOLO_HUSH", KL_OWN, "", "a key"),
    KL_PARAM_KEY_OR_ADDRESS(struct config, id, "KOLO_MEET", KL_OWN, "", "where, or a key"),
};

static const struct kl_param_set set = KL_PARAM_SET("test", struct config, rows);

/* Settings from an environment of one variable, without files. */
static struct kl_settings only(char *const environment[])
{
    return (struct kl_settings){.environment = environment, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
}

static void defaults_are_as_written(void **state)
{
    char *const nothing[] = {NULL};
    struct kl_settings from = only(nothing);
    struct config c;

    (void)state;
    memset(&c, 0xff, sizeof c);
    kl_param_load_from(&set, &c, &from);
    assert_int_equal(c.count, 3);
    assert_int_equal(c.bytes, 8192);
    assert_int_equal(c.decided, -2);
    assert_true(c.on);
    assert_int_equal(c.speed, 1);
    assert_int_equal(c.unset, -1);
    assert_int_equal(c.sides, 3);
    assert_string_equal(c.name, "");
    assert_string_equal(c.secret, "");
}

static const struct {
    int row;
    const char *text;
    enum kl_param_state state;
    int64_t value; /* of the number behind the row; for strings, its length */
} cases[] = {
    {COUNT, "2", KL_PARAM_IS_SET, 2},          {COUNT, "64", KL_PARAM_IS_SET, 64},
    {COUNT, "0x10", KL_PARAM_IS_SET, 16},      {COUNT, "1", KL_PARAM_IS_REFUSED, 3},
    {COUNT, "65", KL_PARAM_IS_REFUSED, 3},     {COUNT, "4K", KL_PARAM_IS_REFUSED, 3},
    {COUNT, "many", KL_PARAM_IS_REFUSED, 3},   {COUNT, "", KL_PARAM_IS_DEFAULT, 3},
    {BYTES, "64", KL_PARAM_IS_SET, 64},        {BYTES, "16M", KL_PARAM_IS_SET, 16 << 20},
    {BYTES, "63", KL_PARAM_IS_REFUSED, 8192},  {BYTES, "17M", KL_PARAM_IS_REFUSED, 8192},
    {BYTES, "-2", KL_PARAM_IS_REFUSED, 8192},  {DECIDED, "-2", KL_PARAM_IS_SET, -2},
    {DECIDED, "4K", KL_PARAM_IS_SET, 4096},    {DECIDED, "-1", KL_PARAM_IS_REFUSED, -2},
    {DECIDED, "0", KL_PARAM_IS_REFUSED, -2},   {ON, "off", KL_PARAM_IS_SET, 0},
    {ON, "2", KL_PARAM_IS_REFUSED, 1},         {SPEED, "SLOW", KL_PARAM_IS_SET, 0},
    {SPEED, "slower", KL_PARAM_IS_REFUSED, 1}, {UNSET, "fast", KL_PARAM_IS_SET, 1},
    {UNSET, "?", KL_PARAM_IS_REFUSED, -1},     {SIDES, "top", KL_PARAM_IS_SET, 4},
    {SIDES, "^top", KL_PARAM_IS_SET, 3},       {SIDES, "left,bottom", KL_PARAM_IS_REFUSED, 3},
    {NAME, "seven 7", KL_PARAM_IS_SET, 7},     {NAME, "eight: 8", KL_PARAM_IS_REFUSED, 0},
};

static int64_t value_of(const struct config *c, int row)
{
    switch (row) {
    case COUNT:
        return c->count;
    case BYTES:
        return c->bytes;
    case DECIDED:
        return c->decided;
    case ON:
        return c->on;
    case SPEED:
        return c->speed;
    case UNSET:
        return c->unset;
    case SIDES:
        return c->sides;
    default:
        return (int64_t)strlen(c->name);
    }
}

static void texts_are_taken_or_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        char variable[64];
        char *const environment[] = {variable, NULL};
        struct kl_settings from = only(environment);
        struct kl_setting setting = {.text = "untouched"};
        struct config config;

        snprintf(variable, sizeof variable, "%s=%s", rows[c->row].name, c->text);
        kl_param_load_from(&set, &config, &from);
        expect_case(variable, value_of(&config, c->row) == c->value);
        expect_case(variable, kl_param_load_row(&rows[c->row], &config, &from, &setting) == c->state);
        expect_case(variable, !strcmp(setting.text, c->state == KL_PARAM_IS_DEFAULT ? "untouched" : c->text));
        for (int other = COUNT; other <= NAME; other++) { /* neighbouring fields are not overwritten */
            struct config plain;
            char *const nothing[] = {NULL};
            struct kl_settings none = only(nothing);

            kl_param_load_from(&set, &plain, &none);
            if (other != c->row) expect_case(variable, value_of(&config, other) == value_of(&plain, other));
        }
    }
}

static const struct {
    int row;
    const char *text;
} expectations[] = {
    {COUNT, "an integer from 2 to 64"}, {BYTES, "a size from 64 to 16M"},
    {DECIDED, "a size from 4K to 1G"},  {ON, "0, 1, on or off"},
    {SPEED, "one of slow, fast"},       {SIDES, "a list (\"A,B\"; \"^A,B\" for all others) of ALL, left, right, top"},
    {NAME, "text of at most 7 bytes"},
};

static void what_is_expected_is_said(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, expectations)
    {
        char text[128];

        assert_string_equal(kl_param_expected(&rows[c->row], text, sizeof text), c->text);
    }
}

#define KEY "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static const struct {
    int row;
    const char *text, *shown;
} showings[] = {
    {NAME, "ab", "ab"},
    {NAME, KEY, KEY},
    {SECRET, "host:1234", "(set)"},
    {SECRET, "", ""},
    {ID, "host:1234", "host:1234"},
    {ID, "[2001:db8::7%eth0]:1234", "[2001:db8::7%eth0]:1234"},
    {ID, "0123456789abcdef0123456789abcdef.example.com:1", "0123456789abcdef0123456789abcdef.example.com:1"},
    {ID, KEY, "(set)"},
    {ID, KEY ":1", "(set)"},
    {ID, "host:" KEY, "(set)"},
    {ID, "swordfish", "(set)"},
    {ID, "", ""},
};

static void secrets_are_not_shown_and_addresses_are_none(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, showings) assert_string_equal(kl_param_shown(&rows[c->row], c->text), c->shown);
}

static void values_do_not_depend_on_how_they_are_written(void **state)
{
    static const struct {
        int row;
        const char *text, *value;
    } values[] = {
        {COUNT, "", "3"},
        {COUNT, "0x10", "16"},
        {COUNT, "many", "3"},
        {BYTES, "4k", "4096"},
        {DECIDED, "", "-2"},
        {ON, "off", "0"},
        {ON, "", "1"},
        {SPEED, "SLOW", "slow"},
        {UNSET, "", ""},
        {SIDES, "^top", "left,right"},
        {SIDES, "right,left", "left,right"},
        {NAME, "Ann", "Ann"},
        {NAME, "far too long", ""},
    };

    (void)state;
    FOR_EACH_CASE(v, values)
    {
        char variable[64], text[KL_PARAM_TEXT];
        char *const environment[] = {variable, NULL};
        struct kl_settings from = only(environment);

        snprintf(variable, sizeof variable, "%s=%s", rows[v->row].name, v->text);
        assert_string_equal(kl_param_value(&rows[v->row], &from, text), v->value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_do_not_depend_on_how_they_are_written),
        cmocka_unit_test(defaults_are_as_written),
        cmocka_unit_test(texts_are_taken_or_refused),
        cmocka_unit_test(what_is_expected_is_said),
        cmocka_unit_test(secrets_are_not_shown_and_addresses_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
