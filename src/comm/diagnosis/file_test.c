/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/file.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *pattern, *path; /* without the process */
} names[] = {
    {"/tmp/f.%r", "/tmp/f.3"},      {"/tmp/f", "/tmp/f.3"}, {"%h/%r-%c.json", "a_b/3-beef.json"},
    {"100%%-%x-%r%", "100%-%x-3%"}, {"%%r", "%r.3"},        {"", ".3"},
};

static void patterns_become_names(void **state)
{
    const struct kl_watch_name whose = {.host = "a/b", .rank = 3, .communicator = 0xbeef};
    char path[KL_WATCH_PATH], pid[32];

    (void)state;
    FOR_EACH_CASE(c, names)
    {
        assert_int_equal(kl_watch_file_name(c->pattern, &whose, path), ncclSuccess);
        expect_case(c->pattern, !strcmp(path, c->path));
    }
    snprintf(pid, sizeof pid, "%d.3", (int)getpid());
    assert_int_equal(kl_watch_file_name("%p", &whose, path), ncclSuccess);
    assert_string_equal(path, pid);
}

static void a_long_name_is_refused(void **state)
{
    const struct kl_watch_name whose = {.host = "h"};
    char path[KL_WATCH_PATH], pattern[2 * KL_WATCH_PATH];

    (void)state;
    memset(pattern, 'a', sizeof pattern);
    pattern[sizeof pattern - 1] = 0;
    kl_error_quiet(1);
    assert_int_equal(kl_watch_file_name(pattern, &whose, path), ncclInvalidArgument);
    kl_error_quiet(0);
}

static void put(void *ctx, FILE *to)
{
    fputs((const char *)ctx, to);
}

static void a_file_is_there_as_a_whole_or_not_at_all(void **state)
{
    char folder[] = "/tmp/kolo-file-test-XXXXXX", path[64], text[16] = "";
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    assert_int_equal(kl_watch_file_write(path, put, (void *)(uintptr_t) "long text"), ncclSuccess);
    assert_int_equal(kl_watch_file_write(path, put, (void *)(uintptr_t) "new"), ncclSuccess); /* replaced */
    assert_non_null(f = fopen(path, "r"));
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "new");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left */

    kl_error_quiet(1);
    assert_int_equal(kl_watch_file_write(path, put, (void *)(uintptr_t) "x"), ncclSystemError);
    assert_non_null(strstr(kl_error_text(), path));
    assert_int_equal(kl_watch_file_write("/dev/full/x", put, (void *)(uintptr_t) "x"), ncclSystemError);
    kl_error_quiet(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_become_names),
        cmocka_unit_test(a_long_name_is_refused),
        cmocka_unit_test(a_file_is_there_as_a_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
