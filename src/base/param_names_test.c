/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param_names.h"

#include "tests/kolo_test.h"

struct config {
    int64_t x;
};

static const struct kl_param one_rows[] = {
    KL_PARAM_INT(struct config, x, "NCCL_BUFFSIZE", KL_ALIKE, "1", 0, 9, ""),
    KL_PARAM_INT(struct config, x, "NCCL_P2P_LEVEL", KL_OWN, "1", 0, 9, ""),
};
static const struct kl_param two_rows[] = {
    KL_PARAM_INT(struct config, x, "KOLO_TIMEOUT", KL_OWN, "1", 0, 9, ""),
    KL_PARAM_INT(struct config, x, "KOLO_BOOTSTRAP_TIMEOUT", KL_OWN, "1", 0, 9, ""),
};
static const struct kl_param_set one = KL_PARAM_SET("one", struct config, one_rows);
static const struct kl_param_set two = KL_PARAM_SET("two", struct config, two_rows);
static const struct kl_param_set *const sets[] = {&one, &two, NULL};
static const struct kl_param_name others[] = {
    {"NCCL_ALGO", NULL}, {"KOLO_ON", NULL}, {"KOLO_RANK", "the job"}, {"NCCL_PLUGIN_*", "plugins"}, {NULL, NULL}};
static const struct kl_param_registry registry = {sets, others};

static void names_are_found(void **state)
{
    (void)state;
    assert_ptr_equal(kl_param_find(&registry, "NCCL_P2P_LEVEL"), &one_rows[1]);
    assert_ptr_equal(kl_param_find(&registry, "KOLO_TIMEOUT"), &two_rows[0]);
    assert_null(kl_param_find(&registry, "NCCL_ALGO"));
    assert_null(kl_param_find(&registry, "nccl_buffsize"));
    assert_ptr_equal(kl_param_find_other(&registry, "NCCL_ALGO"), &others[0]);
    assert_ptr_equal(kl_param_find_other(&registry, "NCCL_PLUGIN_SPEED"), &others[3]);
    assert_null(kl_param_find_other(&registry, "NCCL_ALGOS"));
    assert_null(kl_param_find_other(&registry, "NCCL_BUFFSIZE"));
}

static const struct {
    const char *asked, *nearest;
} misspelt[] = {
    {"NCCL_BUFSIZE", "NCCL_BUFFSIZE"},
    {"NCCL_BUFFSIZES", "NCCL_BUFFSIZE"},
    {"NCCL_BUFF_SIZE", "NCCL_BUFFSIZE"},
    {"NCCL_BFUFSIZE", "NCCL_BUFFSIZE"},
    {"KOLO_BUFFSIZE", "NCCL_BUFFSIZE"}, /* not an alias, but the likely intention */
    {"NCCL_TIMEOUT", "KOLO_TIMEOUT"},
    {"KOLO_TIMEOUT_S", "KOLO_TIMEOUT"},
    {"KOLO_BOOTSTRAP_TIMEOUTS", "KOLO_BOOTSTRAP_TIMEOUT"},
    {"NCCL_ALOG", "NCCL_ALGO"},
    {"KOLO_RANKS", "KOLO_RANK"},
    {"KOLO_NO", "KOLO_ON"}, /* neighbours swapped are one mistake */
    {"NCCL_P2P_LEVLE", "NCCL_P2P_LEVEL"},
    {"NCCL_", NULL},
    {"NCCL_X", NULL},
    {"NCCL_ELEPHANTS", NULL},
    {"NCCL_ALG", "NCCL_ALGO"},
    {"NCCL_BUFFERS_OF_MANY_SIZES", NULL},
    {"NCCL_AN_EXTREMELY_LONG_NAME_THAT_NOBODY_WOULD_EVER_WANT_TO_TYPE_AND_NOTHING_IS_LIKE", NULL},
};

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, misspelt)
    {
        const char *got = kl_param_nearest(&registry, c->asked);

        if (!got != !c->nearest || (got && strcmp(got, c->nearest)))
            fail_msg("%s: %s, not %s", c->asked, got ? got : "nothing", c->nearest ? c->nearest : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(the_nearest_name_is_suggested),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
