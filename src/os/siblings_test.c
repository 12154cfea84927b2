/* SPDX-License-Identifier: Apache-2.0 */
#include "os/siblings.h"

#include "base/clock.h"
#include "base/error.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const none[] = {NULL}, *const names[] = {"SIBLINGS_A", "SIBLINGS_B", NULL};
static const char said[] = "thirteen bytes";

/* Children of one parent, and those of one job whoever their parents are, find the same file. */
static void a_job_has_a_path(void **state)
{
    char by_parent[KL_SIBLINGS_PATH], by_job[KL_SIBLINGS_PATH], other[KL_SIBLINGS_PATH];

    (void)state;
    unsetenv("SIBLINGS_B");
    setenv("SIBLINGS_A", "1", 1);
    kl_siblings_path(none, 0, by_parent);
    kl_siblings_path(names, 0, other);
    assert_string_equal(by_parent, other); /* one is not set */
    setenv("SIBLINGS_B", "2", 1);
    kl_siblings_path(names, 0, by_job);
    assert_string_not_equal(by_job, by_parent);
    kl_siblings_path(names, 1, other);
    assert_string_not_equal(by_job, other);
    setenv("SIBLINGS_B", "3", 1);
    kl_siblings_path(names, 0, other);
    assert_string_not_equal(by_job, other);
    pid_t child = fork(); /* another parent, the same job */
    if (!child) {
        char here[KL_SIBLINGS_PATH], mine[KL_SIBLINGS_PATH];
        kl_siblings_path(names, 0, here);
        kl_siblings_path(none, 0, mine);
        _exit(strcmp(here, other) != 0 || !strcmp(mine, by_parent));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_is_left_is_read(void **state)
{
    char path[KL_SIBLINGS_PATH];

    (void)state;
    kl_siblings_path(none, 7, path);
    pid_t child = fork();
    if (!child) {
        char heard[sizeof said];
        _exit(kl_siblings_read(path, heard, sizeof heard, kl_deadline_in_ms(kolo_test_hang_ms())) ||
              strcmp(heard, said) != 0);
    }
    assert_int_equal(kl_siblings_leave(path, said, sizeof said), ncclSuccess);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(unlink(path), 0);
}

static void what_is_wrong_is_refused(void **state)
{
    char path[KL_SIBLINGS_PATH], heard[sizeof said];

    (void)state;
    kl_siblings_path(none, 8, path);
    kl_error_quiet(1);
    assert_int_equal(kl_siblings_read(path, heard, sizeof heard, kl_deadline_in_ms(10)), ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "nobody has written"));
    assert_int_equal(kl_siblings_leave(path, said, 3), ncclSuccess);
    assert_int_equal(kl_siblings_read(path, heard, sizeof heard, kl_deadline_in_ms(10)), ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "not what was expected"));
    assert_int_equal(kl_siblings_leave(path, said, sizeof said), ncclSuccess);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(kl_siblings_read(path, heard, sizeof heard, kl_deadline_in_ms(10)), ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "somebody else's"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(kl_siblings_read(path, heard, sizeof heard, kl_deadline_in_ms(10)), ncclSystemError);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kl_siblings_leave("/no/such/folder/x", said, sizeof said), ncclSystemError);
    kl_error_quiet(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_a_path),
        cmocka_unit_test(what_is_left_is_read),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
