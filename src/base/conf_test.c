/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conf.h"

#include "tests/kolo_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* "NAME=VALUE@LINE" for each entry and "!LINE" for each problem, with blanks between. */
static void describe(const struct kl_conf *conf, char *text, size_t bytes)
{
    size_t n = 0;

    text[0] = 0;
    for (size_t i = 0; i < conf->nentries; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s=%s@%d ", conf->entries[i].name, conf->entries[i].value,
                              conf->entries[i].line);
    for (size_t i = 0; i < conf->nproblems; i++)
        n += (size_t)snprintf(text + n, bytes - n, "!%d ", conf->problems[i].line);
}

static const struct {
    const char *text, *want;
} cases[] = {
    {"", ""},
    {"\n\n", ""},
    {"A=1", "A=1@1 "},
    {"A=1\n", "A=1@1 "},
    {"A=1\nB=2\n", "A=1@1 B=2@2 "},
    {"# A=1\n\nB=2", "B=2@3 "},
    {"#\n##=\nB=2", "B=2@3 "},
    {"A=", "A=@1 "},
    {"A=b=c", "A=b=c@1 "},
    {" A = \"x\" ", " A = \"x\" @1 "}, /* literally */
    {"A=1\r\n\r\n#x\r\n", "A=1@1 "},
    {"A=1\nA=2\n", "A=1@1 A=2@2 "},
    {"NONSENSE\nA=1\n=x\n", "A=1@2 !1 !3 "},
    {"=", "!1 "},
    {" # not a comment\n", "!1 "},
};

static void lines(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_conf conf;
        char text[256];

        kl_conf_parse(&conf, "x.conf", c->text, strlen(c->text));
        describe(&conf, text, sizeof text);
        if (strcmp(text, c->want)) fail_msg("\"%s\" is \"%s\", not \"%s\"", c->text, text, c->want);
        assert_string_equal(conf.file, "x.conf");
        kl_conf_free(&conf);
        assert_int_equal(conf.nentries, 0);
    }
}

static void the_first_of_a_name_counts(void **state)
{
    static const char text[] = "A=1\nAA=2\nA=3\n";
    struct kl_conf conf;

    (void)state;
    kl_conf_parse(&conf, "x.conf", text, strlen(text));
    assert_string_equal(kl_conf_find(&conf, "A")->value, "1");
    assert_int_equal(kl_conf_find(&conf, "AA")->line, 2);
    assert_null(kl_conf_find(&conf, "B"));
    assert_null(kl_conf_find(&conf, ""));
    kl_conf_free(&conf);
    assert_null(kl_conf_find(&conf, "A"));
}

static void long_lines_are_left_out(void **state)
{
    char text[2 * KL_CONF_LINE + 16];
    struct kl_conf conf;

    (void)state;
    memset(text, 'x', sizeof text);
    text[1] = '=';
    text[KL_CONF_LINE] = '\n'; /* 1023 bytes: just fits */
    kl_conf_parse(&conf, "x.conf", text, KL_CONF_LINE + 1);
    assert_int_equal(conf.nentries, 1);
    assert_int_equal(strlen(conf.entries[0].value), KL_CONF_LINE - 2);
    kl_conf_free(&conf);

    text[KL_CONF_LINE] = 'x';
    text[KL_CONF_LINE + 1] = '\n'; /* 1024 bytes */
    memcpy(text + KL_CONF_LINE + 2, "A=1", 3);
    kl_conf_parse(&conf, "x.conf", text, KL_CONF_LINE + 5);
    assert_int_equal(conf.nentries, 1);
    assert_string_equal(conf.entries[0].name, "A");
    assert_int_equal(conf.nproblems, 1);
    assert_int_equal(conf.problems[0].line, 1);
    kl_conf_free(&conf);
}

static void zero_bytes_are_a_problem(void **state)
{
    static const char text[] = "A=1\0z\nB=\0\nC=3\n";
    struct kl_conf conf;

    (void)state;
    kl_conf_parse(&conf, "x.conf", text, sizeof text - 1);
    assert_int_equal(conf.nentries, 1);
    assert_string_equal(conf.entries[0].name, "C");
    assert_int_equal(conf.nproblems, 2);
    kl_conf_free(&conf);
}

static void problems_are_bounded(void **state)
{
    struct kl_conf conf;
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 2 ? '\n' : 'x';
    kl_conf_parse(&conf, "x.conf", text, sizeof text);
    assert_int_equal(conf.nproblems, KL_CONF_PROBLEMS);
    kl_conf_free(&conf);
}

static void a_huge_file_is_used_up_to_a_limit(void **state)
{
    size_t bytes = KL_CONF_BYTES + 100;
    char *text = malloc(bytes);
    struct kl_conf conf;

    (void)state;
    for (size_t i = 0; i < bytes; i++) text[i] = "A=1\n"[i % 4];
    memcpy(text, "B=2\n", 4);
    kl_conf_parse(&conf, "x.conf", text, bytes);
    assert_int_equal(conf.nentries, KL_CONF_BYTES / 4);
    assert_int_equal(conf.nproblems, 1);
    assert_non_null(kl_conf_find(&conf, "B"));
    kl_conf_free(&conf);

    text[KL_CONF_BYTES - 1] = '7'; /* the line at the limit is not cut to A=1 and used */
    kl_conf_parse(&conf, "x.conf", text, bytes);
    assert_int_equal(conf.nentries, KL_CONF_BYTES / 4 - 1);
    kl_conf_free(&conf);
    free(text);
}

static void files(void **state)
{
    char path[] = "/tmp/kolo_conf_XXXXXX";
    struct kl_conf conf;
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "A=1\nbad\n", 8), 8);
    close(fd);
    kl_conf_read(&conf, path, true);
    assert_string_equal(conf.file, path);
    assert_string_equal(kl_conf_find(&conf, "A")->value, "1");
    assert_int_equal(conf.nproblems, 1);
    kl_conf_free(&conf);

    assert_int_equal(unlink(path), 0);
    kl_conf_read(&conf, path, false); /* the file need not exist */
    assert_int_equal(conf.nproblems, 0);
    kl_conf_free(&conf);
    kl_conf_read(&conf, path, true);
    assert_int_equal(conf.nproblems, 1);
    assert_int_equal(conf.problems[0].line, 0);
    assert_string_equal(conf.file, path);
    kl_conf_free(&conf);

    assert_int_equal(mkfifo(path, 0600), 0);
    kl_conf_read(&conf, path, false); /* returns */
    kl_conf_free(&conf);
    assert_int_equal(unlink(path), 0);

    kl_conf_read(&conf, "/", false); /* exists, and is no file */
    assert_int_equal(conf.nproblems, 1);
    kl_conf_free(&conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(the_first_of_a_name_counts),
        cmocka_unit_test(long_lines_are_left_out),
        cmocka_unit_test(zero_bytes_are_a_problem),
        cmocka_unit_test(problems_are_bounded),
        cmocka_unit_test(a_huge_file_is_used_up_to_a_limit),
        cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
