/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct values {
    int number, flag, toggle;
    uint64_t bytes, wait_ms, rate;
    const char *text;
    struct kl_opt_list words;
};

static const struct kl_opt table[] = {
    {'n', "number", KL_OPT_INT, offsetof(struct values, number), 1, 100, "N", "a number"},
    {0, "np", KL_OPT_INT, offsetof(struct values, number), 1, 100, "N", "mpirun's"},
    {'u', NULL, KL_OPT_INT, offsetof(struct values, number), 0, INT_MAX, "N", "without a bound"},
    {'F', "flag", KL_OPT_FLAG, offsetof(struct values, flag), 0, 0, NULL, "a flag"},
    {'I', "toggle", KL_OPT_SWITCH, offsetof(struct values, toggle), 0, 0, "[0|1]", "a switch"},
    {'b', "bytes", KL_OPT_SIZE, offsetof(struct values, bytes), 0, 0, "BYTES", "a size"},
    {0, "wait", KL_OPT_TIME, offsetof(struct values, wait_ms), 0, 0, "S", "a time"},
    {0, "rate", KL_OPT_RATE, offsetof(struct values, rate), 0, 0, "R", "a rate"},
    {'t', "text", KL_OPT_TEXT, offsetof(struct values, text), 0, 0, "TEXT", "a text"},
    {'w', "word", KL_OPT_LIST, offsetof(struct values, words), 0, 0, "TEXT", "a text, and more of them"},
    {'G', "graph", KL_OPT_REFUSED, 0, 0, 0, NULL, "there are no graphs"},
    KL_OPT_END,
};

enum { MAX_WORDS = 8 };

static const struct parse_case {
    const char *line; /* words separated by spaces; the command's name comes before them */
    int stop;         /* the result of kl_opts_parse, -1 for an error */
    const char *why;  /* in the error */
    struct values want;
} parse_cases[] = {
    {"", 1, NULL, {0}},
    {"-n 4", 3, NULL, {.number = 4}},
    {"-n4", 2, NULL, {.number = 4}},
    {"-np 4", 3, NULL, {.number = 4}},
    {"--np=4", 2, NULL, {.number = 4}},
    {"-np 0", -1, "--np: \"0\" is not a whole number", {0}},
    {"--number 4", 3, NULL, {.number = 4}},
    {"--number=4", 2, NULL, {.number = 4}},
    {"-n 4 -n 5", 5, NULL, {.number = 5}},
    {"-n 0x10", 3, NULL, {.number = 16}},
    {"-n 100", 3, NULL, {.number = 100}},
    {"-n 101", -1, "-n: \"101\" is not a whole number from 1 to 100", {0}},
    {"-n 0", -1, "from 1 to 100", {0}},
    {"-u -1", -1, "from 0 on", {0}},
    {"-n 4294967297", -1, "\"4294967297\"", {0}},
    {"-n 4x", -1, "\"4x\"", {0}},
    {"-n", -1, "-n needs a value", {0}},
    {"--number=", -1, "--number: \"\" is not", {0}},
    {"--text=", -1, "--text needs a value, and was given an empty one", {0}},
    {"--word=", -1, "--word needs a value, and was given an empty one", {0}},
    {"--num 4", -1, "unknown option --num", {0}},
    {"--numbers 4", -1, "unknown option --numbers", {0}},
    {"-q", -1, "unknown option -q", {0}},
    {"--rate 10G", 3, NULL, {.rate = 10000000000}},
    {"--rate 2.5g", 3, NULL, {.rate = 2500000000}},
    {"--rate 100M", 3, NULL, {.rate = 100000000}},
    {"--rate 1000000", 3, NULL, {.rate = 1000000}},
    {"--rate 2147483647M", 3, NULL, {.rate = 2147483647000000}},
    {"--rate 2147483648M", -1, "--rate: \"2147483648M\" is not a rate", {0}},
    {"--rate 999999", -1, "is not a rate", {0}},
    {"--rate 10Gb", -1, "is not a rate", {0}},
    {"--rate -1G", -1, "is not a rate", {0}},
    {"--rate nanG", -1, "is not a rate", {0}},
    {"--rate G", -1, "is not a rate", {0}},
    {"-F", 2, NULL, {.flag = 1}},
    {"--flag=1", -1, "--flag takes no value", {0}},
    {"-I", 2, NULL, {.toggle = 1}},
    {"-I 0", 3, NULL, {.toggle = 0}},
    {"-I1 -F", 3, NULL, {.toggle = 1, .flag = 1}},
    {"-I word", 2, NULL, {.toggle = 1}},
    {"-I2", -1, "-I: \"2\"", {0}},
    {"-b 64K", 3, NULL, {.bytes = 64 << 10}},
    {"-b 2g", 3, NULL, {.bytes = 2ull << 30}},
    {"-b -1", -1, "-b: \"-1\" is not a size", {0}},
    {"-b 64KB", 3, NULL, {.bytes = 64 << 10}},
    {"-b 1.5K", 3, NULL, {.bytes = 1536}},
    {"-b 64KX", -1, "-b: \"64KX\" is not a size", {0}},
    {"--wait 0.25", 3, NULL, {.wait_ms = 250}},
    {"--wait -1", -1, "--wait: \"-1\" is not a number of seconds", {0}},
    {"--wait nan", -1, "--wait", {0}},
    {"-t -n", 3, NULL, {.text = "-n"}},
    {"-G", -1, "-G has no meaning here: there are no graphs", {0}},
    {"--graph 1", -1, "--graph has no meaning here", {0}},
    {"word -n 4", 1, NULL, {0}},
    {"-n 4 word -n 5", 3, NULL, {.number = 4}},
    {"-n 4 -- -n 5", 4, NULL, {.number = 4}},
    {"- -n 4", 1, NULL, {0}}, /* a lone dash is an operand */
};

static int split(char *line, char **words)
{
    static char command[] = "command";
    int n = 0;

    words[n++] = command;
    for (char *w = strtok(line, " "); w && n < MAX_WORDS; w = strtok(NULL, " ")) words[n++] = w;
    return n;
}

static void options_parse(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, parse_cases)
    {
        char line[128], why[128] = "", *words[MAX_WORDS];
        struct values v = {0};

        snprintf(line, sizeof line, "%s", c->line);
        int n = split(line, words);
        int stop = kl_opts_parse(table, n, words, 1, &v, why, sizeof why);
        expect_case(c->line, stop == c->stop);
        if (c->why) {
            expect_case(why, strstr(why, c->why) != NULL);
            continue;
        }
        expect_case(c->line, v.number == c->want.number && v.flag == c->want.flag && v.toggle == c->want.toggle);
        expect_case(c->line, v.bytes == c->want.bytes && v.wait_ms == c->want.wait_ms && v.rate == c->want.rate);
        expect_case(c->line, c->want.text ? v.text && !strcmp(v.text, c->want.text) : !v.text);
    }
}

static void lists_grow_with_each_time(void **state)
{
    char *words[2 + KL_OPT_LIST_MAX + 1], why[128] = "", first[] = "--word=a", more[] = "-wb";
    struct values v = {0};

    (void)state;
    words[1] = first;
    for (int i = 2; i < 2 + KL_OPT_LIST_MAX; i++) words[i] = more;
    assert_int_equal(kl_opts_parse(table, 4, words, 1, &v, why, sizeof why), 4);
    assert_int_equal(v.words.n, 3);
    assert_string_equal(v.words.text[0], "a");
    assert_string_equal(v.words.text[2], "b");
    v.words.n = 0;
    assert_int_equal(kl_opts_parse(table, 2 + KL_OPT_LIST_MAX, words, 1, &v, why, sizeof why), -1);
    assert_non_null(strstr(why, "at most 64 times"));
}

/* People first try a file without its option: the error names the option. */
static void files_are_told_their_option(void **state)
{
    static const struct kl_opt topo[] = {{0, "topo", KL_OPT_TEXT, 0, 0, 0, "FILE", "a machine"}, KL_OPT_END};
    char why[256];

    (void)state;
    kl_opts_refuse_word(topo, "a100.xml", why, sizeof why);
    assert_string_equal(why, "\"a100.xml\" is no operand; use --topo a100.xml");
    kl_opts_refuse_word(topo, "/dev/null", why, sizeof why);
    assert_string_equal(why, "\"/dev/null\" is no operand; use --topo /dev/null");
    kl_opts_refuse_word(topo, "a100", why, sizeof why);
    assert_string_equal(why, "unexpected operand \"a100\"");
    kl_opts_refuse_word(table, "a100.xml", why, sizeof why); /* has no such option */
    assert_string_equal(why, "unexpected operand \"a100.xml\"");
}

static void help_lists_what_can_be_given(void **state)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);

    (void)state;
    kl_opts_help(table, f);
    fclose(f);
    assert_non_null(strstr(text, "  -n, --number N              a number\n"));
    assert_non_null(strstr(text, "      --wait S                a time\n"));
    assert_null(strstr(text, "graph")); /* refused values are not offered */
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_parse),
        cmocka_unit_test(lists_grow_with_each_time),
        cmocka_unit_test(files_are_told_their_option),
        cmocka_unit_test(help_lists_what_can_be_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
