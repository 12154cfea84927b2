/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/config.h"

#include "tests/kolo_test.h"

static struct kl_topo_config config;
static struct kl_topo_options options;

static void load(char *variable)
{
    char *const environment[] = {variable, NULL};
    struct kl_settings from = {.environment = environment, .user = KL_CONF_NONE, .system = KL_CONF_NONE};

    kl_topo_config_load_from(&config, &from, &options);
}

static void nothing_set_is_the_documented_default(void **state)
{
    (void)state;
    load(NULL);
    assert_false(options.shm_disable || options.p2p_disable);
    assert_int_equal(options.p2p_level, -1);
    assert_string_equal(config.topo_file, "");
}

static const struct {
    const char *text;
    int level; /* as paths are numbered */
} levels[] = {
    {"LOC", 0}, {"NVL", 1}, {"NVB", 2}, {"C2C", 3}, {"PIX", 4}, {"PXB", 5},   {"PXN", 7},
    {"PHB", 8}, {"SYS", 9}, {"sys", 9}, {"0", 0},   {"1", 4},   {"2", 5},     {"3", 8},
    {"4", 9},   {"5", 9},   {"6", -1},  {"-1", -1}, {"", -1},   {"NODE", -1},
};

static void levels_have_names_and_old_numbers(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, levels)
    {
        char variable[64] = "NCCL_P2P_LEVEL=";

        load(strcat(variable, c->text));
        expect_case(c->text, options.p2p_level == c->level);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_set_is_the_documented_default),
        cmocka_unit_test(levels_have_names_and_old_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
