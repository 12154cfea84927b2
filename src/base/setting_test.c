/* SPDX-License-Identifier: Apache-2.0 */
#include "base/setting.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A home directory and a system file, in a folder of their own. */
static char dir[64], home[96], home_file[128], chosen_file[128], system_file[128], home_env[128], chosen_env[160];

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/kolo_setting_XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(home, sizeof home, "%s/home", dir);
    snprintf(home_file, sizeof home_file, "%s/.nccl.conf", home);
    snprintf(chosen_file, sizeof chosen_file, "%s/my.conf", dir);
    snprintf(system_file, sizeof system_file, "%s/nccl.conf", dir);
    snprintf(home_env, sizeof home_env, "HOME=%s", home);
    snprintf(chosen_env, sizeof chosen_env, "NCCL_CONF_FILE=%s", chosen_file);
    if (mkdir(home, 0700)) return -1;
    write_file(home_file, "NCCL_A=home\nNCCL_B=home\nNCCL_D=\nKOLO_X=home\nOTHER=home\n");
    write_file(chosen_file, "NCCL_A=chosen\n");
    write_file(system_file, "NCCL_A=system\nNCCL_B=system\nNCCL_C=system\nNCCL_D=system\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(home_file);
    unlink(chosen_file);
    unlink(system_file);
    rmdir(home);
    return rmdir(dir); /* fails if a test left something behind */
}

/* "TEXT from ORIGIN", or "unset". */
static const char *look_up(const struct kl_settings *s, const char *name)
{
    static char text[2 * KL_ORIGIN_TEXT];
    char origin[KL_ORIGIN_TEXT];
    struct kl_setting found;

    if (!kl_settings_find(s, name, &found)) return "unset";
    const char *slash = strrchr(kl_setting_origin(&found, origin), '/');
    snprintf(text, sizeof text, "%s from %s", found.text, slash ? slash + 1 : origin);
    return text;
}

static void the_environment_wins_then_the_user_then_the_system(void **state)
{
    char *const environment[] = {home_env, (char[]){"NCCL_AB=x"}, (char[]){"NCCL_A=env"}, NULL};
    struct kl_settings s;

    (void)state;
    kl_settings_open(&s, environment, system_file);
    assert_string_equal(look_up(&s, "NCCL_A"), "env from environment");
    assert_string_equal(look_up(&s, "NCCL_B"), "home from .nccl.conf:2");
    assert_string_equal(look_up(&s, "NCCL_C"), "system from nccl.conf:3");
    assert_string_equal(look_up(&s, "NCCL_Z"), "unset");
    kl_settings_close(&s);
}

static void a_command_line_counts_before_all_others(void **state)
{
    char *const environment[] = {home_env, (char[]){"NCCL_A=env"}, NULL};
    const struct kl_setting with[] = {{.name = "NCCL_A", .text = "first", .file = "--with"},
                                      {.name = "NCCL_A", .text = "last", .file = "--with"},
                                      {.name = "NCCL_B", .text = "", .file = "--with"}};
    struct kl_settings below, s;

    (void)state;
    kl_settings_open(&below, environment, system_file);
    s = kl_settings_over(&below, with, 3);
    assert_string_equal(look_up(&s, "NCCL_A"), "last from --with");
    assert_string_equal(look_up(&s, "NCCL_B"), "unset"); /* empty: the default, despite the files */
    assert_string_equal(look_up(&s, "NCCL_C"), "system from nccl.conf:3");
    assert_string_equal(look_up(&below, "NCCL_A"), "env from environment");
    kl_settings_close(&below);
}

static void empty_means_default_and_hides_lower_sources(void **state)
{
    char *const environment[] = {home_env, (char[]){"NCCL_A="}, NULL};
    struct kl_settings s;

    (void)state;
    kl_settings_open(&s, environment, system_file);
    assert_string_equal(look_up(&s, "NCCL_A"), "unset");
    assert_string_equal(look_up(&s, "NCCL_D"), "unset");
    kl_settings_close(&s);
}

static void a_chosen_file_replaces_the_users(void **state)
{
    char *const environment[] = {home_env, chosen_env, NULL};
    struct kl_settings s;

    (void)state;
    kl_settings_open(&s, environment, system_file);
    assert_string_equal(look_up(&s, "NCCL_A"), "chosen from my.conf:1");
    assert_string_equal(look_up(&s, "NCCL_B"), "system from nccl.conf:2");
    assert_string_equal(look_up(&s, "KOLO_X"), "unset");
    kl_settings_close(&s);
}

static void only_a_chosen_file_must_exist(void **state)
{
    char *const nowhere[] = {(char[]){"HOME=/nonexistent"}, NULL};
    char *const missing[] = {home_env, (char[]){"NCCL_CONF_FILE=/nonexistent/nccl.conf"}, NULL};
    struct kl_settings s;

    (void)state;
    kl_settings_open(&s, nowhere, "/nonexistent/nccl.conf");
    assert_int_equal(s.user.nproblems, 0);
    assert_int_equal(s.system.nproblems, 0);
    kl_settings_close(&s);

    kl_settings_open(&s, missing, system_file);
    assert_int_equal(s.user.nproblems, 1);
    assert_string_equal(look_up(&s, "NCCL_B"), "system from nccl.conf:2");
    kl_settings_close(&s);
}

static void collect(void *ctx, const struct kl_setting *setting)
{
    char *text = ctx;

    sprintf(text + strlen(text), "%s=%s ", setting->name, setting->text);
}

static void each_visits_our_names_in_all_sources(void **state)
{
    char long_name[400] = "NCCL_", text[512] = "";

    (void)state;
    memset(long_name + 5, 'X', 300);
    strcat(long_name, "=1");
    char *const environment[] = {home_env,
                                 (char[]){"NCCL_A=env"},
                                 (char[]){"PATH=/bin"},
                                 (char[]){"KOLO_Y="},
                                 (char[]){"NCCL_NO_EQUALS"},
                                 long_name,
                                 NULL};
    struct kl_settings s;

    kl_settings_open(&s, environment, system_file);
    kl_settings_each(&s, collect, text);
    assert_string_equal(text, "NCCL_A=env KOLO_Y= NCCL_A=home NCCL_B=home NCCL_D= KOLO_X=home "
                              "NCCL_A=system NCCL_B=system NCCL_C=system NCCL_D=system ");
    kl_settings_close(&s);
}

static void the_process_has_its_own_environment(void **state)
{
    const struct kl_settings *s = kl_settings_process();

    (void)state;
    setenv("NCCL_KOLO_SETTING_TEST", "one", 1);
    assert_string_equal(look_up(s, "NCCL_KOLO_SETTING_TEST"), "one from environment");
    setenv("NCCL_KOLO_SETTING_TEST", "two", 1);
    assert_string_equal(look_up(s, "NCCL_KOLO_SETTING_TEST"), "two from environment");
    assert_ptr_equal(s, kl_settings_process());
    unsetenv("NCCL_KOLO_SETTING_TEST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_line_counts_before_all_others),
        cmocka_unit_test(the_environment_wins_then_the_user_then_the_system),
        cmocka_unit_test(empty_means_default_and_hides_lower_sources),
        cmocka_unit_test(a_chosen_file_replaces_the_users),
        cmocka_unit_test(only_a_chosen_file_must_exist),
        cmocka_unit_test(each_visits_our_names_in_all_sources),
        cmocka_unit_test(the_process_has_its_own_environment),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
