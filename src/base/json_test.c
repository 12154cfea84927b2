/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

static void expect_text(const char *text, const char *json)
{
    char *got = NULL;
    size_t bytes = 0;
    struct kl_json j = kl_json_to(open_memstream(&got, &bytes));

    kl_json_text(&j, NULL, text);
    fclose(j.to);
    assert_string_equal(got, json);
    free(got);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    expect_text("plain", "\"plain\"");
    expect_text("", "\"\"");
    expect_text(NULL, "null");
    expect_text("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
    expect_text("\x01\n\x7f", "\"\\u0001\\u000a\\u007f\"");
    expect_text("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89\"");
}

static void what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    expect_text("\xff", "\"\\ufffd\"");
    expect_text("\xc3", "\"\\ufffd\"");
    expect_text("\xe2\x82", "\"\\ufffd\\ufffd\"");
    expect_text("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* overlong */
    expect_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
    expect_text("\xf5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void documents_nest(void **state)
{
    char *got = NULL;
    size_t bytes = 0;
    struct kl_json j = kl_json_to(open_memstream(&got, &bytes));

    (void)state;
    kl_json_open(&j, NULL, '{');
    kl_json_uint(&j, "most", UINT64_MAX);
    kl_json_int(&j, "least", INT64_MIN);
    kl_json_milli(&j, "time", 1002003);
    kl_json_bool(&j, "on", true);
    kl_json_hex(&j, "at", 0xabcdef0123456789);
    kl_json_open(&j, "empty", '[');
    kl_json_close(&j, ']');
    kl_json_open(&j, "list", '[');
    for (int i = 0; i < 2; i++) {
        kl_json_open(&j, NULL, '{');
        kl_json_null(&j, "nothing");
        kl_json_bool(&j, "off", false);
        kl_json_close(&j, '}');
    }
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
    fclose(j.to);
    assert_string_equal(got, "{\n \"most\": 18446744073709551615,\n \"least\": -9223372036854775808,\n"
                             " \"time\": 1002.003,\n \"on\": true,\n \"at\": \"0xabcdef0123456789\",\n \"empty\": [],\n"
                             " \"list\": [\n  {\"nothing\": null,\"off\": false},\n"
                             "  {\"nothing\": null,\"off\": false}\n ]\n}\n");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(what_is_no_utf8_is_replaced),
        cmocka_unit_test(documents_nest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
