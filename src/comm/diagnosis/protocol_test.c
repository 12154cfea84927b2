/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/protocol.h"

#include "tests/kolo_test.h"

static const struct {
    const char *said;
    enum kl_ras_result turn;
    const char *reply;
} lines[] = {
    {"CLIENT PROTOCOL 2\n", KL_RAS_ANSWER, "SERVER PROTOCOL 2\n"},
    {"client protocol 3\r\n", KL_RAS_ANSWER, "SERVER PROTOCOL 2\n"},
    {"CLIENT PROTOCOL\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"CLIENT PROTOCOL x\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"TIMEOUT 7\n", KL_RAS_ANSWER, "OK\n"},
    {"timeout 0\n", KL_RAS_ANSWER, "OK\n"},
    {"TIMEOUT -1\n", KL_RAS_ANSWER, "ERROR: Invalid timeout value, 0 to 3600 seconds\n"},
    {"TIMEOUT 99999999999999999999\n", KL_RAS_ANSWER, "ERROR: Invalid timeout value, 0 to 3600 seconds\n"},
    {"TIMEOUT \n", KL_RAS_ANSWER, "ERROR: Invalid timeout value, 0 to 3600 seconds\n"},
    {"SET FORMAT json\n", KL_RAS_ANSWER, "OK\n"},
    {"Set Format Text\n", KL_RAS_ANSWER, "OK\n"},
    {"SET FORMAT xml\n", KL_RAS_ANSWER, "ERROR: Unknown format, text or json\n"},
    {"STATUS\n", KL_RAS_REPORT, ""},
    {"verbose status\r\n", KL_RAS_REPORT, ""},
    {"Local Status\n", KL_RAS_REPORT, ""},
    {"STATUS NOW\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"\r\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"GET / HTTP/1.1\r\n", KL_RAS_ANSWER, "ERROR: Unknown command\n"},
    {"STATUS", KL_RAS_MORE, ""},
    {"", KL_RAS_MORE, ""},
};

static void lines_are_understood_or_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, lines)
    {
        struct kl_ras_session s = {0};
        char reply[KL_RAS_REPLY];
        size_t taken;

        expect_case(c->said, kl_ras_parse(&s, c->said, strlen(c->said), &taken, reply) == c->turn);
        expect_case(c->said, taken == strlen(c->said) && !strcmp(reply, c->reply));
    }
}

static void lines_come_in_pieces_and_together(void **state)
{
    static const char said[] = "TIMEOUT 3\r\nSET FORMAT JSON\nVERBOSE STATUS\nrest";
    struct kl_ras_session s = {0};
    char reply[KL_RAS_REPLY];
    size_t taken, at = 0;

    (void)state;
    for (int turns = 0; turns < 3;) { /* a byte at a time */
        enum kl_ras_result turn = kl_ras_parse(&s, said + at, 1, &taken, reply);
        assert_int_equal(taken, 1);
        at++;
        turns += turn != KL_RAS_MORE;
    }
    assert_string_equal(said + at, "rest");
    assert_true(s.json && s.verbose && s.timeout_s == 3);

    s = (struct kl_ras_session){0};
    assert_int_equal(kl_ras_parse(&s, said, sizeof said, &taken, reply), KL_RAS_ANSWER);
    assert_int_equal(taken, strlen("TIMEOUT 3\r\n"));
}

static void a_long_line_closes_the_connection(void **state)
{
    char said[KL_RAS_LINE + 10], reply[KL_RAS_REPLY];
    struct kl_ras_session s = {0};
    size_t taken;

    (void)state;
    memset(said, 'a', sizeof said);
    said[KL_RAS_LINE - 1] = '\n';
    assert_int_equal(kl_ras_parse(&s, said, KL_RAS_LINE, &taken, reply), KL_RAS_ANSWER);
    said[KL_RAS_LINE - 1] = 'a';
    assert_int_equal(kl_ras_parse(&s, said, sizeof said, &taken, reply), KL_RAS_LEAVE);
    assert_string_equal(reply, "ERROR: Line too long\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_understood_or_refused),
        cmocka_unit_test(lines_come_in_pieces_and_together),
        cmocka_unit_test(a_long_line_closes_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
