/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/jobid.h"
#include "tools/kolo/rankenv.h"

#include <stdio.h>

static char *const inherited[] = {(char[]){"HOME=/root"},
                                  (char[]){"RANK=7"},
                                  (char[]){"KOLO_COMM_ID=old"},
                                  (char[]){"RANKED=1"},
                                  (char[]){"NCCL_HOSTID=mine"},
                                  (char[]){"KOLO_RANK=9"},
                                  NULL};

/* The value of `name`, and that it is there once. */
static const char *value(char **env, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (char **e = env; *e; e++) {
        if (strncmp(*e, name, n) || (*e)[n] != '=') continue;
        if (found) fail_msg("%s is there twice", name);
        found = *e + n + 1;
    }
    return found;
}

static void a_rank_is_described(void **state)
{
    static const struct {
        const char *name, *value;
    } want[] = {
        {"KOLO_RANK", "3"},          {"KOLO_SIZE", "6"},
        {"KOLO_LOCAL_RANK", "1"},    {"KOLO_LOCAL_SIZE", "2"},
        {"KOLO_COMM_ID", "abc"},     {"RANK", "3"},
        {"WORLD_SIZE", "6"},         {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},   {"MASTER_ADDR", "1.2.3.4"},
        {"MASTER_PORT", "29500"},    {"NCCL_HOSTID", "h1"},
        {"NCCL_TOPO_FILE", "/t"},    {"KOLO_HOST_DEVICES", "8"},
        {"HOME", "/root"},           {"RANKED", "1"},
        {"KOLO_NET_SPEED", "10000"}, {"KOLO_MNNVL", "2"},
    };
    struct kl_rank_env rank = {.rank = 3,
                               .size = 6,
                               .local_rank = 1,
                               .local_size = 2,
                               .comm_id = "abc",
                               .master_addr = "1.2.3.4",
                               .master_port = 29500,
                               .host_id = "h1",
                               .topo_file = "/t",
                               .host_devices = 8,
                               .mnnvl = 2,
                               .link_mbps = 10000};
    char **env = kl_rank_environ(inherited, &rank);

    (void)state;
    FOR_EACH_CASE(c, want)
    {
        expect_case(c->name, value(env, c->name) != NULL);
        assert_string_equal(value(env, c->name), c->value);
    }
    kl_rank_environ_free(env);
}

static void what_is_not_given_is_inherited(void **state)
{
    struct kl_rank_env rank = {.rank = 0, .size = 1, .local_size = 1, .master_addr = "x"};
    char **env = kl_rank_environ(inherited, &rank);

    (void)state;
    assert_string_equal(value(env, "NCCL_HOSTID"), "mine");
    assert_null(value(env, "NCCL_TOPO_FILE"));
    assert_null(value(env, "KOLO_HOST_DEVICES"));
    assert_null(value(env, "KOLO_COMM_ID")); /* another job's id would be worse than none */
    kl_rank_environ_free(env);
    kl_rank_environ_free(NULL);
}

static void ids_survive_as_text(void **state)
{
    ncclUniqueId id, back;
    char text[KL_JOBID_TEXT];

    (void)state;
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) id.internal[i] = (char)(i * 37 + 200);
    kl_jobid_print(&id, text);
    assert_int_equal(strlen(text), 256);
    assert_int_equal(kl_jobid_parse(text, &back), 0);
    assert_memory_equal(&id, &back, sizeof id);
    for (int i = 0; i < 256; i++)
        if (text[i] >= 'a') text[i] = (char)(text[i] - 'a' + 'A');
    assert_int_equal(kl_jobid_parse(text, &back), 0);
    assert_memory_equal(&id, &back, sizeof id);

    text[255] = 0;
    assert_int_equal(kl_jobid_parse(text, &back), -1);
    memset(text, 'g', 256);
    assert_int_equal(kl_jobid_parse(text, &back), -1);
    assert_int_equal(kl_jobid_parse("localhost:4000", &back), -1);
    assert_memory_equal(&id, &back, sizeof id); /* untouched on failure */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_described),
        cmocka_unit_test(what_is_not_given_is_inherited),
        cmocka_unit_test(ids_survive_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
