/* SPDX-License-Identifier: Apache-2.0 */
/* The id that rank 0 publishes for the other ranks of its host: available until all ranks have joined, and no
 * longer. */
#include "bootstrap/jobs.h"

#include "os/job_name.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_MS = 10 };

static char job[KL_JOB_NAME];

static void name_job(void)
{
    char prefix[KL_JOB_NAME];

    kl_job_name_prefix(prefix);
    snprintf(job, sizeof job, "%.24stest-%d", prefix, (int)getpid());
}

static bool find(ncclUniqueId *id, int ms)
{
    return !kl_bootstrap_id_find(job, id, kl_deadline_in_ms((uint64_t)ms));
}

static ncclUniqueId leave_one(void)
{
    ncclUniqueId id;

    must(!kl_bootstrap_id_create(&id));
    must(!kl_bootstrap_id_leave(&id, job, kl_deadline_in_ms(kolo_test_hang_ms())));
    return id;
}

static void expect_none(const char *why)
{
    ncclUniqueId id;

    kl_error_quiet(1);
    assert_false(find(&id, SHORT_MS));
    kl_error_quiet(0);
    if (!strstr(kl_error_text(), why)) fail_msg("\"%s\" does not say \"%s\"", kl_error_text(), why);
}

/* A rank that has joined may end the next moment, and its successor look for the next id. */
static void look(struct rank *me, struct kl_bootstrap *b)
{
    ncclUniqueId id;

    (void)me;
    (void)b;
    must(!find(&id, 0));
}

static void it_is_gone_when_all_have_come(void **state)
{
    struct rank ranks[3];
    ncclUniqueId found;

    (void)state;
    for (int times = 0; times < 50; times++) {
        ncclUniqueId id = leave_one();
        assert_true(find(&found, (int)kolo_test_hang_ms()));
        assert_memory_equal(&id, &found, sizeof id);
        setup_ranks(ranks, 3, &found, look);
        run_ranks(ranks, 3);
        expect_joined(ranks, 3);
    }
}

static void it_is_gone_when_one_does_not_come(void **state)
{
    struct rank ranks[2];
    ncclUniqueId id = leave_one();

    (void)state;
    setup_ranks(ranks, 2, &id, NULL);
    ranks[0].config.timeout_ms = 50;
    run_ranks(ranks, 1);
    assert_int_equal(ranks[0].joined, ncclRemoteError);
    expect_none("nobody has written");

    id = leave_one();
    kl_error_quiet(1);
    (void)KL_FAIL(ncclInternalError, "for a test");
    kl_error_quiet(0);
    kl_bootstrap_decline(&id, 1, 1, 2);
    expect_none("nobody has written");
    assert_int_equal(kl_bootstrap_id_leave(&id, job, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
    expect_none("nobody has written"); /* no more ranks are expected */
    setup_ranks(ranks, 2, &id, NULL);  /* a rank that has the id nevertheless is told, and then the root ends */
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].joined, ncclRemoteError);
}

static void it_is_withdrawn(void **state)
{
    struct rank ranks[2];
    ncclUniqueId id = leave_one();

    (void)state;
    kl_bootstrap_id_withdraw(&id);
    expect_none("nobody has written");
    kl_bootstrap_id_withdraw(&id);
    setup_ranks(ranks, 2, &id, NULL); /* its root is still there */
    run_ranks(ranks, 2);
    expect_joined(ranks, 2);
}

static void close_sockets(void)
{
    struct stat st;

    for (int fd = 3; fd < 256; fd++)
        if (!fstat(fd, &st) && S_ISSOCK(st.st_mode)) close(fd);
}

/* Keep the parent's descriptors open, except its sockets, until the test ends it. */
static void live_on(int until, int told)
{
    char c = 0;

    close_sockets();
    _exit(write(told, &c, 1) != 1 || read(until, &c, 1) != 0);
}

/* The lock passes to a child that was made by clone(2) directly; but it has no listener. */
static void an_id_at_which_nobody_listens_is_none(void **state)
{
    int status, fds[2], told[2];
    char c;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(told), 0);
    pid_t writer = fork();
    if (!writer) {
        close(fds[1]);
        (void)leave_one();
        if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) live_on(fds[0], told[1]);
        raise(SIGKILL);
    }
    close(fds[0]);
    close(told[1]);
    assert_int_equal(read(told[0], &c, 1), 1);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_true(WIFSIGNALED(status));
    expect_none("made by process");
    close(fds[1]);
    assert_int_equal(read(told[0], &c, 1), 0); /* it has ended, too */
    close(told[0]);
    expect_none("nobody has written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_at_which_nobody_listens_is_none), /* first: before this process has threads */
        leak_test(it_is_gone_when_all_have_come),
        leak_test(it_is_gone_when_one_does_not_come),
        leak_test(it_is_withdrawn),
    };

    name_job();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
