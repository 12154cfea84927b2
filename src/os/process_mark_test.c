/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process_mark.h"
#include "tests/kolo_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that has written its mark, and waits until it is killed. */
static pid_t begin_child(struct kl_process_mark *mark)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        *mark = kl_process_mark_own();
        if (write(fd[1], mark, sizeof *mark) != sizeof *mark) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(fd[0], mark, sizeof *mark), sizeof *mark);
    close(fd[0]);
    close(fd[1]);
    return pid;
}

static void a_process_is_over_when_it_was_killed_and_when_it_is_gone(void **state)
{
    struct kl_process_mark mark;
    siginfo_t info;
    const pid_t pid = begin_child(&mark);

    (void)state;
    assert_int_equal(mark.pid, pid);
    assert_false(kl_process_mark_is_over(&mark));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(kl_process_mark_is_over(&mark)); /* a zombie */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(kl_process_mark_is_over(&mark));
}

static void another_process_with_the_pid_is_not_the_same(void **state)
{
    struct kl_process_mark mark = kl_process_mark_own();

    (void)state;
    assert_false(kl_process_mark_is_over(&mark));
    mark.started++;
    assert_true(kl_process_mark_is_over(&mark));
}

static void other_namespaces_cannot_be_seen(void **state)
{
    struct kl_process_mark mark = kl_process_mark_own();

    (void)state;
    mark.started++;
    mark.pid_namespace++;
    assert_false(kl_process_mark_is_over(&mark));
    mark = (struct kl_process_mark){.pid = 1};
    assert_false(kl_process_mark_is_over(&mark));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_over_when_it_was_killed_and_when_it_is_gone),
        cmocka_unit_test(another_process_with_the_pid_is_not_the_same),
        cmocka_unit_test(other_namespaces_cannot_be_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
