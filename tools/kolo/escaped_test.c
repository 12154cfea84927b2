/* SPDX-License-Identifier: Apache-2.0 */
/* Control characters are shown, whichever pieces they are written in. */
#include "tools/kolo/escaped.h"

#include "tests/kolo_test.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *first, const char *second, const char *want)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *below = open_memstream(&text, &bytes), *above = kl_escaped(below);

    assert_non_null(above);
    fputs(first, above);
    fflush(above);
    fputs(second, above);
    fclose(above);
    fclose(below);
    assert_string_equal(text, want);
    free(text);
}

static void control_characters_are_shown(void **state)
{
    (void)state;
    expect("a\tb\n", "c", "a\tb\nc");
    expect("\x1b[31mred", "\x07\r\n", "\\x1b[31mred\\x07\\x0d\n");
    expect("del\x7f", "", "del\\x7f");
    expect("\xc3\xa9 \xc2\xa0 \xe2\x82\xac", "", "\xc3\xa9 \xc2\xa0 \xe2\x82\xac");
    expect("\xc2\x9b"
           "31m",
           "", "\\x9b31m");
    expect("\xc2", "\x9b", "\\x9b");
    expect("\xc2", "\xa9", "\xc2\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(control_characters_are_shown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
