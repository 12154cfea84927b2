/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include "tests/kolo_test.h"

#include <sys/wait.h>
#include <unistd.h>

static int exit_status_of(pid_t child)
{
    int status;

    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A grandchild is neither its parent nor its grandparent. */
static int run_child(uint32_t parents)
{
    uint32_t mine = kl_process_generation();

    if (kl_process_is(parents) || !kl_process_is(mine)) return 1;
    pid_t grandchild = fork();
    if (!grandchild) _exit(kl_process_is(parents) || kl_process_is(mine));
    return exit_status_of(grandchild);
}

static void a_child_is_of_another_generation(void **state)
{
    uint32_t mine = kl_process_generation();

    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (!child) _exit(run_child(mine));
        assert_int_equal(exit_status_of(child), 0);
        assert_true(kl_process_is(mine));
        assert_int_equal(kl_process_generation(), mine);
    }
}

static void a_child_has_a_number_of_its_own(void **state)
{
    const int32_t mine = kl_process_id();

    (void)state;
    assert_int_equal(mine, getpid());
    pid_t child = fork();
    if (!child) _exit(kl_process_id() != getpid());
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(kl_process_id(), mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_is_of_another_generation),
                                       cmocka_unit_test(a_child_has_a_number_of_its_own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
