/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect on the others when a rank dies, aborts, or never comes: every survivor gets an error that names it, in
 * bounded time, and ends by itself; nothing is left behind.
 *
 * Its ranks are processes (own_ranks.h). Jobs that a rank cannot join are in joining_test.c.
 */
#include "include/kolo.h"

#include "tests/hang.h"
#include "tests/kolo_test.h"
#include "tests/own_ranks.h"
#include "tests/own_shm.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1 << 18 };
#define TIMEOUT_S "TEST_TIMEOUT_S" /* of one operation, in s */

static bool own_shm; /* this process has a /dev/shm of its own */

/* ---- a rank ---- */

struct rank {
    int rank, size;
    ncclComm_t comm;
    float *send, *recv;
    bool messages; /* instead of reductions */
};

static ncclResult_t reduce_once(struct rank *r)
{
    ncclResult_t rc = ncclAllReduce(r->send, r->recv, COUNT, ncclFloat, ncclSum, r->comm, NULL);

    return rc ? rc : koloStreamSynchronize(NULL);
}

/* A message to the next rank, and one from the one before. */
static ncclResult_t pass_on(struct rank *r)
{
    ncclResult_t rc = ncclGroupStart(), ended;

    if (!rc) rc = ncclSend(r->send, COUNT, ncclFloat, (r->rank + 1) % r->size, r->comm, NULL);
    if (!rc) rc = ncclRecv(r->recv, COUNT, ncclFloat, (r->rank + r->size - 1) % r->size, r->comm, NULL);
    ended = ncclGroupEnd();
    if (!rc) rc = ended;
    return rc ? rc : koloStreamSynchronize(NULL);
}

static ncclResult_t operate_once(struct rank *r)
{
    return r->messages ? pass_on(r) : reduce_once(r);
}

/* Operate until it fails. The first result shows the parent that the job runs. */
static ncclResult_t operate_until_failure(struct rank *r)
{
    ncclResult_t rc = operate_once(r);

    if (!rc) {
        printf("running\n");
        fflush(stdout);
    }
    while (!rc) rc = operate_once(r);
    return rc;
}

/* All guarantees after the loss of rank 2: the code, the name, stickiness, and an end. */
static int survive(struct rank *r)
{
    ncclResult_t rc = operate_until_failure(r), async = ncclSuccess;
    char first[1024];

    snprintf(first, sizeof first, "%s", ncclGetLastError(r->comm));
    bool fine = rc == ncclRemoteError && says(first, "rank 2");
    fine = fine && !ncclCommGetAsyncError(r->comm, &async) && async == ncclRemoteError;
    fine = fine && operate_once(r) == ncclRemoteError && !strcmp(first, ncclGetLastError(r->comm));
    ncclCommDestroy(r->comm);
    if (!fine) fprintf(stderr, "rank %d: %d, \"%s\", async %d\n", r->rank, rc, first, async);
    return fine ? EXIT_AS_EXPECTED : 1;
}

static int lose_rank_2(struct rank *r)
{
    return r->rank == 2 ? (int)operate_until_failure(r) : survive(r); /* the parent kills rank 2 */
}

static int lose_rank_2_in_messages(struct rank *r)
{
    r->messages = true;
    return lose_rank_2(r);
}

static void *abort_soon(void *arg)
{
    struct rank *r = arg;

    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* somewhere in the middle: nothing depends on where */
    return ncclCommAbort(r->comm) ? arg : NULL;
}

static int abort_rank_2(struct rank *r)
{
    pthread_t thread;
    void *failed;

    if (r->rank != 2) return survive(r);
    /* The others do not get past their second operation without this rank: both waits can only end by the abort. */
    ncclResult_t rc = ncclAllReduce(r->send, r->recv, COUNT, ncclFloat, ncclSum, r->comm, NULL);
    rc = rc ? rc : koloStreamSynchronize(NULL);
    float *other = malloc(sizeof *other * COUNT);
    rc = rc ? rc : ncclRecv(other, COUNT, ncclFloat, 0, r->comm, NULL); /* rank 0 never sends */
    pthread_create(&thread, NULL, abort_soon, r);
    rc = rc ? rc : koloStreamSynchronize(NULL);
    pthread_join(thread, &failed);
    bool fine = rc == ncclInternalError && !failed && says(ncclGetLastError(NULL), "aborted");
    if (!fine) fprintf(stderr, "rank 2: %d \"%s\"\n", rc, ncclGetLastError(NULL));
    free(other);
    return fine ? EXIT_AS_EXPECTED : 1;
}

static int wait_in_vain(struct rank *r)
{
    if (r->rank == 2) { /* alive, but never calls */
        sleep(kolo_test_hang_s());
        return 1;
    }
    ncclResult_t rc = operate_until_failure(r);
    bool fine = rc == ncclRemoteError && says(ncclGetLastError(r->comm), "nothing moved for ") &&
                says(ncclGetLastError(r->comm), " s, waiting for rank 2 (host ") &&
                says(ncclGetLastError(r->comm), "which has not called it: so far it has called nothing");
    fine = fine && reduce_once(r) == rc && koloStreamSynchronize(NULL) == rc && koloStreamQuery(NULL) == rc;
    fine = fine && ncclCommDestroy(r->comm) == rc && koloStreamSynchronize(NULL) == ncclSuccess;
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* Rank 0 has a longer timeout for its other operations, the others for all. */
static int time_out(struct rank *r)
{
    ncclResult_t rc = koloSetTimeout(r->comm, kolo_test_hang_ms());

    rc = rc ? rc : reduce_once(r);
    if (!rc && !r->rank) rc = koloSetTimeout(r->comm, strtoul(getenv(TIMEOUT_S), NULL, 10) * 1000);
    if (rc) return 1;
    rc = r->rank == 2 ? ncclRemoteError : reduce_once(r);
    while (r->rank == 2 && !ncclCommGetAsyncError(r->comm, &rc) && !rc) sched_yield();
    bool fine = rc == ncclRemoteError && says(ncclGetLastError(r->comm), "at rank 0: nothing moved for ") &&
                says(ncclGetLastError(r->comm), " s, waiting for rank 2 (host ");
    fine = fine && koloSetTimeout(r->comm, 1ull << 60) == ncclInvalidArgument;
    ncclCommDestroy(r->comm);
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* The parent stops rank 2 in the middle of it: whatever the others wait for, all of them name it. */
static int miss_the_stopped(struct rank *r)
{
    if (r->rank == 2) return (int)operate_until_failure(r);
    ncclResult_t rc = operate_until_failure(r);
    bool fine = rc == ncclRemoteError && says(ncclGetLastError(r->comm), "waiting for rank 2 (host ") &&
                says(ncclGetLastError(r->comm), "), which is silent: is it stopped, or cut off?");
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* Rank 2 has another count: all report the same sentence about it. */
static int disagree_on(struct rank *r, size_t ours, size_t of_rank_2)
{
    size_t count = r->rank == 2 ? of_rank_2 : ours;
    ncclResult_t rc = reduce_once(r); /* all have joined */

    rc = rc ? rc : ncclAllReduce(r->send, r->recv, count, ncclFloat, ncclSum, r->comm, NULL);

    rc = rc ? rc : koloStreamSynchronize(NULL);
    bool fine = rc == ncclInvalidUsage && says(ncclGetLastError(r->comm), "rank 2 called AllReduce(") &&
                says(ncclGetLastError(r->comm), "as #2 where the others called AllReduce(");
    ncclCommDestroy(r->comm);
    return fine ? EXIT_AS_EXPECTED : 1;
}

static int disagree(struct rank *r)
{
    return disagree_on(r, COUNT, COUNT - 1000);
}

static int disagree_on_little(struct rank *r)
{
    return disagree_on(r, 8, 16);
}

/* So different that they choose different algorithms: no rank comes to the place where another one waits, so that they
 * ask. */
static int diverge(struct rank *r)
{
    ncclResult_t rc = reduce_once(r);

    rc = rc ? rc : ncclAllReduce(r->send, r->recv, r->rank == 2 ? 8 : COUNT, ncclFloat, ncclSum, r->comm, NULL);
    rc = rc ? rc : koloStreamSynchronize(NULL);
    bool fine = rc == ncclInvalidUsage && says(ncclGetLastError(r->comm), "rank 2 called AllReduce(8 elements) as #2");
    ncclCommDestroy(r->comm);
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* Rank 2 leaves without taking part. */
static int desert(struct rank *r)
{
    ncclResult_t rc = reduce_once(r); /* all have joined */

    if (!rc && r->rank != 2) rc = reduce_once(r);
    bool fine = r->rank == 2 || (rc == ncclRemoteError && says(ncclGetLastError(r->comm), "rank 2") &&
                                 says(ncclGetLastError(r->comm), "destroyed its communicator"));

    ncclCommDestroy(r->comm);
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* A forked child's calls with its copy of a communicator; none may reach the ranks. */
static ncclResult_t try_collective(struct rank *r)
{
    return reduce_once(r);
}

static ncclResult_t try_message(struct rank *r)
{
    return ncclSend(r->send, COUNT, ncclFloat, (r->rank + 1) % r->size, r->comm, NULL);
}

static ncclResult_t try_group(struct rank *r)
{
    ncclGroupStart();
    ncclAllReduce(r->send, r->recv, COUNT, ncclFloat, ncclSum, r->comm, NULL);
    return ncclGroupEnd();
}

static ncclResult_t try_parents_group(struct rank *r)
{
    (void)r;
    return ncclGroupEnd();
}

static ncclResult_t try_count(struct rank *r)
{
    return ncclCommCount(r->comm, &r->size);
}

static ncclResult_t try_async_error(struct rank *r)
{
    ncclResult_t async;

    return ncclCommGetAsyncError(r->comm, &async);
}

static ncclResult_t try_finalize(struct rank *r)
{
    return ncclCommFinalize(r->comm);
}

static ncclResult_t try_destroy(struct rank *r)
{
    return ncclCommDestroy(r->comm);
}

static ncclResult_t try_abort(struct rank *r)
{
    return ncclCommAbort(r->comm);
}

static ncclResult_t (*const tries[])(struct rank *r) = {try_parents_group, try_collective,  try_message,  try_group,
                                                        try_count,         try_async_error, try_finalize, try_destroy,
                                                        try_abort,         try_destroy};

/* The number of the first call that was not refused as expected; 0 if all were. */
static int try_everything(struct rank *r)
{
    alarm(kolo_test_hang_s());
    for (int i = 0; i < COUNT; i++) r->send[i] = -7777;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
        if (tries[i](r) != ncclInvalidUsage || !says(ncclGetLastError(r->comm), "forked from")) return (int)i + 1;
    return koloStreamSynchronize(NULL) || koloStreamQuery(NULL); /* its streams are its own, and empty */
}

static bool sums_are_right(const struct rank *r)
{
    for (int i = 0; i < COUNT; i++)
        if (r->recv[i] != (float)(i % 8 * r->size)) return false;
    return true;
}

/* While the others go on, and this rank's part of an operation is queued in an open group and on the stream. */
static int fork_children(struct rank *r)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < COUNT; i++) r->send[i] = (float)(i % 8);
    for (int round = 0; round < 3 && !rc; round++) {
        int status;
        rc = ncclAllReduce(r->send, r->recv, COUNT, ncclFloat, ncclSum, r->comm, NULL);
        ncclGroupStart();
        rc = rc ? rc : ncclAllReduce(r->send, r->recv, COUNT, ncclFloat, ncclSum, r->comm, NULL);
        pid_t child = fork();
        if (!child) _exit(try_everything(r));
        rc = rc ? rc : ncclGroupEnd();
        rc = rc ? rc : koloStreamSynchronize(NULL);
        waitpid(child, &status, 0);
        if (status) fprintf(stderr, "child of rank %d: status %d\n", r->rank, status);
        for (int i = 0; i < 10 && !rc; i++) rc = sums_are_right(r) ? reduce_once(r) : ncclInternalError;
        if (status) return 1;
    }
    if (rc) fprintf(stderr, "rank %d: %d %s\n", r->rank, rc, ncclGetLastError(r->comm));
    return rc || ncclCommDestroy(r->comm) ? 1 : EXIT_AS_EXPECTED;
}

static const struct role {
    const char *name;
    int (*run)(struct rank *r); /* after joining; NULL: joining fails, and names rank 2 */
} roles[] = {
    {"lose", lose_rank_2},         {"lose_in_messages", lose_rank_2_in_messages},
    {"abort", abort_rank_2},       {"wait", wait_in_vain},
    {"stopped", miss_the_stopped}, {"impatient", time_out},
    {"disagree", disagree},        {"disagree_on_little", disagree_on_little},
    {"diverge", diverge},          {"desert", desert},
    {"fork", fork_children},       {"miss", NULL},
};

static const struct role *role_named(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (!strcmp(roles[i].name, name)) return &roles[i];
    return NULL;
}

static int run_rank(char **argv)
{
    const struct role *role = role_named(argv[1]);
    struct rank r = {.size = RANKS};
    const ncclResult_t rc = join_job(argv, &r.rank, &r.comm);

    if (!role->run) return expect_no_join(rc, r.comm, ncclRemoteError, "rank 2");
    if (rc) {
        fprintf(stderr, "rank %d cannot join: %s\n", r.rank, ncclGetLastError(NULL));
        return 1;
    }
    r.send = calloc(COUNT, sizeof *r.send);
    r.recv = calloc(COUNT, sizeof *r.recv);
    int status = role->run(&r);
    free(r.send);
    free(r.recv);
    return status;
}

/* ---- the parent ---- */

/* Waits until it runs, or ends. */
static bool is_running(const struct child *c)
{
    char text[16];

    return read(c->out, text, sizeof text) > 0;
}

/* 0 where it may be others'. */
static int files_in_shm(void)
{
    DIR *d = own_shm ? opendir("/dev/shm") : NULL;
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static void start_job(struct child *children, const char *role, int first, int last)
{
    char id[2 * NCCL_UNIQUE_ID_BYTES + 1];

    make_id(id);
    for (int r = first; r <= last; r++) start_child(&children[r], role, r, RANKS, id);
}

/* Ranks other than 2, or all: did they end as expected? */
static bool end_as_expected(struct child *children, bool with_rank_2)
{
    bool fine = true;

    for (int r = 0; r < RANKS; r++)
        if (r != 2 || with_rank_2) fine &= wait_for_exit(&children[r]) == EXIT_AS_EXPECTED;
    return fine;
}

/*
 * A job whose ranks wait in vain, as long as `variable` says. Other programs may keep an innocent rank from running for as long
 * as the timeout of the others, but not for far longer.
 */
static void with_longer_timeouts(const char *variable, bool (*run)(void))
{
    static const char *const seconds[] = {"1", "8", "64"};
    bool fine = false;

    for (size_t i = 0; !fine && i < sizeof seconds / sizeof seconds[0]; i++) {
        setenv(variable, seconds[i], 1);
        fine = run();
    }
    unsetenv(variable);
    assert_true(fine);
}

static void kill_rank_2(const char *role)
{
    struct child c[RANKS];
    int files = files_in_shm();

    setenv("KOLO_TIMEOUT", "3600", 1); /* no rank waits that long: a death is noticed */
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "3600", 1);
    start_job(c, role, 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_true(is_running(&c[r]));
    kill(c[2].pid, SIGKILL);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), r == 2 ? 1000 + SIGKILL : EXIT_AS_EXPECTED);
    unsetenv("KOLO_BOOTSTRAP_TIMEOUT");
    unsetenv("KOLO_TIMEOUT");
    assert_int_equal(files_in_shm(), files);
}

static void survivors_name_a_killed_rank_and_end(void **state)
{
    static const char *const copies[] = {"NEVER", "ALWAYS"};

    (void)state;
    kill_rank_2("lose");
    FOR_EACH_CASE(c, copies)
    {
        setenv("KOLO_KERNEL_COPIES", *c, 1);
        kill_rank_2("lose_in_messages");
    }
    unsetenv("KOLO_KERNEL_COPIES");
}

static void an_abort_reaches_every_rank(void **state)
{
    struct child c[RANKS];
    int files = files_in_shm();

    (void)state;
    start_job(c, "abort", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
    assert_int_equal(files_in_shm(), files);
}

static bool leave_rank_2_out(void)
{
    struct child c[RANKS];
    char id[2 * NCCL_UNIQUE_ID_BYTES + 1];

    make_id(id);
    for (int r = 0; r < RANKS; r++)
        if (r != 2) start_child(&c[r], "miss", r, RANKS, id);
    return end_as_expected(c, false);
}

static void a_rank_that_never_comes_is_named(void **state)
{
    (void)state;
    with_longer_timeouts("KOLO_BOOTSTRAP_TIMEOUT", leave_rank_2_out);
}

static bool end_without(struct child *c)
{
    const bool fine = end_as_expected(c, false);

    kill(c[2].pid, SIGKILL);
    wait_for_exit(&c[2]);
    return fine;
}

static bool await_rank_2(void)
{
    struct child c[RANKS];

    start_job(c, "wait", 0, RANKS - 1);
    return end_without(c);
}

static void a_rank_that_never_calls_is_waited_for_as_long_as_allowed(void **state)
{
    (void)state;
    with_longer_timeouts("KOLO_TIMEOUT", await_rank_2);
}

static bool time_one_out(void)
{
    struct child c[RANKS];

    start_job(c, "impatient", 0, RANKS - 1);
    return end_as_expected(c, true);
}

static void one_operation_may_have_less_time(void **state)
{
    (void)state;
    with_longer_timeouts(TIMEOUT_S, time_one_out);
}

static bool stop_rank_2(void)
{
    struct child c[RANKS];
    bool run = true;

    start_job(c, "stopped", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) run &= is_running(&c[r]); /* false: the timeout of one was over before */
    kill(c[2].pid, SIGSTOP);
    return end_without(c) && run;
}

/* Wherever it stops, and whichever ranks wait then. */
static void a_rank_that_is_stopped_is_named_by_all(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) with_longer_timeouts("KOLO_TIMEOUT", stop_rank_2);
}

static bool disagree_apart(void)
{
    struct child c[RANKS];

    start_job(c, "diverge", 0, RANKS - 1);
    return end_as_expected(c, true);
}

static void ranks_that_disagree_or_leave_are_an_error_for_all(void **state)
{
    struct child c[RANKS];

    (void)state;
    start_job(c, "disagree", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
    start_job(c, "disagree_on_little", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
    with_longer_timeouts("KOLO_TIMEOUT", disagree_apart);
    start_job(c, "desert", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
}

static void forked_children_are_refused_and_reach_nobody(void **state)
{
    struct child c[RANKS];

    (void)state;
    start_job(c, "fork", 0, RANKS - 1);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_name_a_killed_rank_and_end),
        cmocka_unit_test(an_abort_reaches_every_rank),
        cmocka_unit_test(a_rank_that_never_comes_is_named),
        cmocka_unit_test(a_rank_that_never_calls_is_waited_for_as_long_as_allowed),
        cmocka_unit_test(one_operation_may_have_less_time),
        cmocka_unit_test(a_rank_that_is_stopped_is_named_by_all),
        cmocka_unit_test(ranks_that_disagree_or_leave_are_an_error_for_all),
        cmocka_unit_test(forked_children_are_refused_and_reach_nobody),
    };

    if (argc > 1) return run_rank(argv);
    own_shm = kolo_test_own_shm();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
