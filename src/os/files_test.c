/* SPDX-License-Identifier: Apache-2.0 */
#include "os/files.h"

#include "os/stop.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_limit(rlim_t soft, rlim_t hard)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};

    if (setrlimit(RLIMIT_NOFILE, &limit)) _exit(99);
}

static rlim_t soft_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

/* Each runs in a child of its own; 0: passed. */

static int allow(void)
{
    set_limit(64, 500);
    return !(kl_files_allow(50) == 64 && soft_limit() == 64 && kl_files_allow(200) == 200 && soft_limit() == 200 &&
             kl_files_allow(501) == 500 && soft_limit() == 500 && kl_files_allow(1000) == 500);
}

static int make_room(void)
{
    set_limit(64, 100);
    return !(!kl_files_make_room(ENFILE) && soft_limit() == 64 && kl_files_make_room(EMFILE) && soft_limit() == 100 &&
             !kl_files_make_room(EMFILE));
}

static int run_out(void)
{
    struct kl_stop stop;
    int n = 0;

    set_limit(32, 200);
    while (!kl_stop_init(&stop)) n++;
    return !(errno == EMFILE && n > 150 && n < 200 && soft_limit() == 200);
}

static const struct {
    const char *label;
    int (*run)(void);
} cases[] = {
    {"as many as are allowed", allow},
    {"more when there are too few", make_room},
    {"until there are no more", run_out},
};

static void the_limit_is_raised_as_far_as_needed(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        int status = -1;
        pid_t child = fork();

        if (!child) _exit(c->run());
        assert_int_equal(waitpid(child, &status, 0), child);
        expect_case(c->label, !status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_limit_is_raised_as_far_as_needed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
