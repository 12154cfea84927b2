/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that every parameter of every module keeps. */
#include "api/param_sets.h"

#include "base/log.h"
#include "tests/kolo_test.h"
#include "tests/leftovers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void (*visit)(const struct kl_param_set *set, const struct kl_param *param);

static void each_row(void)
{
    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++) visit(*set, &(*set)->params[i]);
}

/* A row accepts its own default as text, and stores a value other than the previous one. */
static void accepts_its_default(const struct kl_param_set *set, const struct kl_param *param)
{
    char variable[2 * KL_PARAM_TEXT];
    char *const environment[] = {variable, NULL};
    struct kl_settings from = {.environment = environment, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
    struct kl_setting setting;
    unsigned char *config = malloc(set->config_bytes);

    assert_true(param->offset + param->bytes <= set->config_bytes);
    snprintf(variable, sizeof variable, "%s=%s", param->name, param->dfl);
    memset(config, 0xa5, set->config_bytes);
    enum kl_param_state state = kl_param_load_row(param, config, &from, &setting);
    expect_case(variable, state == (*param->dfl ? KL_PARAM_IS_SET : KL_PARAM_IS_DEFAULT));
    expect_case(variable, config[param->offset] != 0xa5);
    free(config);
}

static void every_default_is_accepted(void **state)
{
    (void)state;
    visit = accepts_its_default;
    each_row();
}

static void is_written_with_care(const struct kl_param_set *set, const struct kl_param *param)
{
    (void)set;
    expect_case(param->name, !strncmp(param->name, "NCCL_", 5) || !strncmp(param->name, "KOLO_", 5));
    for (const char *c = param->name; *c; c++)
        expect_case(param->name, isupper((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
    expect_case(param->name, param->doc[0] && strlen(param->doc) < 110);
    expect_case(param->name, param->doc[strlen(param->doc) - 1] != '.');
    expect_case(param->name, param->min <= param->max);
    expect_case(param->name, param->scope > KL_UNDECLARED && param->scope < KL_PARAM_SCOPES);
    /* Compared values are sent to other ranks, and printed; they have to fit (kl_param_value). */
    expect_case(param->name,
                param->secrecy == KL_PARAM_IS_OPEN || (param->scope != KL_ALIKE && param->scope != KL_HOST_ALIKE));
    expect_case(param->name, param->bytes <= KL_PARAM_TEXT);
    expect_case(param->name,
                (param->type == KL_PARAM_TYPE_ENUM || param->type == KL_PARAM_TYPE_LIST) == (param->choices != NULL));
    /* One name, one meaning. */
    expect_case(param->name, kl_param_find(&kl_param_registry, param->name) == param);
    expect_case(param->name, !kl_param_find_other(&kl_param_registry, param->name));
}

static void every_row_is_written_with_care(void **state)
{
    (void)state;
    visit = is_written_with_care;
    each_row();
}

static void other_names_are_sorted(void **state)
{
    (void)state;
    for (const struct kl_param_name *n = kl_param_registry.others + 1; n->name; n++)
        expect_case(n->name, strcmp(n[-1].name, n->name) < 0);
}

/* The log's lines about unknown names, in a file. */
static void unknown_names_are_reported_once(void **state)
{
    char path[] = "/tmp/kolo_names_XXXXXX", text[4096];

    (void)state;
    close(mkstemp(path));
    clearenv(); /* names that share a slot with a reported name are reported again: keep only the names under test */
    setenv("HOME", "/nonexistent", 1);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    setenv("NCCL_BUFSIZE", "1M", 1);
    setenv("KOLO_ELEPHANTS", "3", 1);
    setenv("NCCL_IB_ECE_ENABLE", "mlx5", 1); /* of NCCL: no effect, no complaint */
    setenv("KOLO_RANK", "0", 1);
    for (int i = 0; i < 3; i++) kl_param_sets_check_names();

    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    unlink(path);
    char *first =
        strstr(text, "NCCL_BUFSIZE (environment) is unknown and has no effect; did you mean NCCL_BUFFSIZE?\n");
    char *other =
        strstr(text, "KOLO_ELEPHANTS (environment) is unknown and has no effect; `kolo env` lists the known names\n");
    assert_non_null(first);
    assert_non_null(other);
    assert_null(strstr(first + 1, "NCCL_BUFSIZE"));
    assert_null(strstr(other + 1, "KOLO_ELEPHANTS"));
    assert_null(strstr(text, "NCCL_IB_ECE_ENABLE"));
    assert_null(strstr(text, "KOLO_RANK"));
}

/* The log. */
struct kolo_test_keep kolo_test_keeps[] = {{"/tmp/kolo_names_", 1, 0}, {NULL, 0, 0}};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_accepted),
        cmocka_unit_test(every_row_is_written_with_care),
        cmocka_unit_test(other_names_are_sorted),
        cmocka_unit_test(unknown_names_are_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
