/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/config.h"

#include "tests/kolo_test.h"

static struct kl_comm_config config;

static void load(char *variable)
{
    char *const environment[] = {variable, NULL};
    struct kl_settings from = {.environment = environment, .user = KL_CONF_NONE, .system = KL_CONF_NONE};

    kl_param_load_from(&kl_comm_param_set, &config, &from);
}

static void nothing_set_is_the_documented_default(void **state)
{
    (void)state;
    load(NULL);
    assert_int_equal(config.bootstrap_timeout_s, 60);
    assert_int_equal(config.timeout_s, 0);
    assert_int_equal(config.buffer_bytes, -2);
    assert_true(config.runtime_connect);
    assert_string_equal(config.hostid, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_set_is_the_documented_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
