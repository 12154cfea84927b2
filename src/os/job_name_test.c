/* SPDX-License-Identifier: Apache-2.0 */
#include "os/job_name.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const none[] = {NULL}, *const shared[] = {"JOB_A", "JOB_B", NULL};
static const char *const own[] = {"TEST_RANK", "TEST_FD", NULL};

static void settings_name_a_job(void **state)
{
    char by_launcher[KL_JOB_NAME], by_job[KL_JOB_NAME], other[KL_JOB_NAME];

    (void)state;
    unsetenv("JOB_B");
    setenv("JOB_A", "1", 1);
    kl_job_name(none, none, 0, by_launcher);
    kl_job_name(shared, none, 0, other);
    assert_string_equal(by_launcher, other); /* one is not set */
    setenv("JOB_B", "2", 1);
    kl_job_name(shared, none, 0, by_job);
    assert_string_not_equal(by_job, by_launcher);
    kl_job_name(shared, none, 1, other);
    assert_string_not_equal(by_job, other);
    setenv("JOB_B", "3", 1);
    kl_job_name(shared, none, 0, other);
    assert_string_not_equal(by_job, other);
}

/* Children of one parent find one name; those of another parent find the same name if settings name the job, and a
 * different one otherwise. */
static void a_parent_names_a_job(void **state)
{
    char by_parent[KL_JOB_NAME], by_job[KL_JOB_NAME];
    int status;

    (void)state;
    setenv("JOB_A", "1", 1);
    setenv("JOB_B", "2", 1);
    kl_job_name(none, none, 0, by_parent);
    kl_job_name(shared, none, 0, by_job);
    pid_t child = fork();
    if (!child) {
        char here[KL_JOB_NAME], mine[KL_JOB_NAME];
        kl_job_name(shared, none, 0, here);
        kl_job_name(none, none, 0, mine);
        _exit(strcmp(here, by_job) != 0 || !strcmp(mine, by_parent));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- launchers, and scripts between them and their ranks ---- */

/* The name that this program finds as a rank started by a shell command that ends with "$0 name". */
static void name_in(const char *command, char name[KL_JOB_NAME])
{
    char line[512], self[256] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    setenv("SELF", self, 1);
    snprintf(line, sizeof line, "exec %s", command);
    FILE *p = popen(line, "r");
    assert_non_null(p);
    assert_non_null(fgets(name, KL_JOB_NAME, p));
    assert_int_equal(pclose(p), 0);
}

#define WRAPPED "sh -c '$SELF name; true'"
#define TWICE   "sh -c 'sh -c \"$SELF name; true\"; true'"

static void scripts_make_no_difference(void **state)
{
    static const char *const ranks[] = {
        "env TEST_RANK=0 TEST_FD=6 $SELF name",
        "env TEST_RANK=1 TEST_FD=7 " WRAPPED,
        "env TEST_RANK=2 TEST_FD=8 " TWICE,
        "env TEST_RANK=3 " TWICE, /* no launcher sets all of them */
        "$SELF name",             /* no launcher sets any */
    };
    char first[KL_JOB_NAME], other[KL_JOB_NAME];

    (void)state;
    name_in(ranks[0], first);
    FOR_EACH_CASE(rank, ranks)
    {
        name_in(*rank, other);
        expect_case(*rank, !strcmp(first, other));
    }
}

/* Two launchers started by rank 1 of a job: each has a job of its own, also for its rank 1. */
static void a_launcher_inside_a_job_has_its_own(void **state)
{
    char outer[KL_JOB_NAME], inner[2][KL_JOB_NAME];

    (void)state;
    name_in("env TEST_RANK=1 TEST_FD=6 $SELF name", outer);
    for (int i = 0; i < 2; i++)
        name_in("env TEST_RANK=1 TEST_FD=6 sh -c 'TEST_FD=7 sh -c \"$SELF name; true\"; true'", inner[i]);
    assert_string_not_equal(inner[0], outer);
    assert_string_not_equal(inner[1], outer);
    assert_string_not_equal(inner[0], inner[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_name_a_job),
        cmocka_unit_test(a_parent_names_a_job),
        cmocka_unit_test(scripts_make_no_difference),
        cmocka_unit_test(a_launcher_inside_a_job_has_its_own),
    };

    if (argc > 1 && !strcmp(argv[1], "name")) {
        char name[KL_JOB_NAME];
        kl_job_name(none, own, 0, name);
        puts(name);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
