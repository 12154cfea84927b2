/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/lines.h"

#include <stdio.h>
#include <stdlib.h>

static const struct feed_case {
    const char *prefix;
    const char *pieces[4];
    const char *before_end; /* the output when all pieces were fed */
    const char *after_end;
} feed_cases[] = {
    {"", {"one\n"}, "one\n", "one\n"},
    {"", {"on", "e\ntw", "o\n"}, "one\ntwo\n", "one\ntwo\n"},
    {"", {"one"}, "", "one\n"},
    {"", {"one\n", "\n", "\n"}, "one\n\n\n", "one\n\n\n"},
    {"[3] ", {"one\ntwo", "\nthr"}, "[3] one\n[3] two\n", "[3] one\n[3] two\n[3] thr\n"},
    {"[3] ", {"\n"}, "[3] \n", "[3] \n"},
    {"[3] ", {""}, "", ""},
};

static void whole_lines_come_out(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, feed_cases)
    {
        struct kl_lines lines = {.prefix = c->prefix};
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);

        for (int i = 0; i < 4 && c->pieces[i]; i++)
            assert_int_equal(kl_lines_feed(&lines, c->pieces[i], strlen(c->pieces[i]), f), 0);
        fflush(f);
        expect_case(c->after_end, !strcmp(text, c->before_end));
        kl_lines_end(&lines, f);
        fclose(f);
        expect_case(c->after_end, !strcmp(text, c->after_end));
        free(text);
    }
}

/* A rank that never writes a newline must not eat the launcher's memory, nor lose a byte. */
static void endless_lines_are_broken(void **state)
{
    enum { PIECE = 1000, PIECES = 3000 };
    struct kl_lines lines = {.prefix = ""};
    char piece[PIECE], *text = NULL;
    size_t length = 0, letters = 0, run = 0;
    FILE *f = open_memstream(&text, &length);

    (void)state;
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(kl_lines_feed(&lines, piece, sizeof piece, f), 0);
        assert_true(lines.size <= 2 * (KL_LINES_MAX + PIECE));
    }
    kl_lines_end(&lines, f);
    fclose(f);
    for (size_t i = 0; i < length; i++) {
        run = text[i] == 'x' ? run + 1 : 0;
        letters += text[i] == 'x';
        assert_true(run <= KL_LINES_MAX);
    }
    assert_int_equal(letters, (size_t)PIECE * PIECES);
    free(text);
}

/* A line of exactly the limit is one line, one byte more is two. */
static void the_limit_is_exact(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        struct kl_lines lines = {.prefix = ""};
        size_t n = KL_LINES_MAX + extra, length = 0, newlines = 0;
        char *bytes = malloc(n + 1), *text = NULL;
        FILE *f = open_memstream(&text, &length);

        memset(bytes, 'x', n);
        bytes[n] = '\n';
        assert_int_equal(kl_lines_feed(&lines, bytes, n + 1, f), 0);
        kl_lines_end(&lines, f);
        fclose(f);
        for (size_t i = 0; i < length; i++) newlines += text[i] == '\n';
        assert_int_equal(newlines, 1 + extra);
        assert_int_equal(length, n + 1 + extra);
        free(text);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_come_out),
        cmocka_unit_test(endless_lines_are_broken),
        cmocka_unit_test(the_limit_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
