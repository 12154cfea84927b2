/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How communicators end: aborts and destroys that meet calls, groups and each other in other threads, and the use of a
 * handle afterwards.
 */
#include "tests/api_check.h"

#include "base/atomic.h"
#include "comm/handle.h"

#include <pthread.h>
#include <sched.h>

static void *abort_when_in_call(void *arg)
{
    ncclComm_t comm = arg;

    while (!kl_handle_callers(comm)) sched_yield();
    return (void *)(uintptr_t)ncclCommAbort(comm);
}

static void *abort_now(void *arg)
{
    return (void *)(uintptr_t)ncclCommAbort(arg);
}

/* Another thread aborts operations in an open group: the group's end reports it, and is the last to access it. */
static void an_abort_meets_an_open_group(void **state)
{
    ncclComm_t pair[2];
    pthread_t aborter;
    int32_t x = 1, y = 0;
    void *rc;

    (void)state;
    ok(koloSetDevice(0));
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclGroupStart());
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], NULL));
    assert_int_equal(pthread_create(&aborter, NULL, abort_now, pair[0]), 0);
    pthread_join(aborter, &rc); /* it does not wait for the group */
    assert_null(rc);
    expect_refused(ncclGroupEnd(), ncclInternalError, "another thread aborted or destroyed the communicator");
    expect_refused(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], NULL), ncclInvalidArgument, "aborted");
    ncclCommDestroy(pair[1]); /* a failure if it knows of the abort by now */
}

/* Finalize and destroy wait for an operation that hangs; the communicator is freed once. */
static void an_abort_ends_a_finalize_and_a_destroy(void **state)
{
    ncclComm_t pair[2];
    int32_t y;

    (void)state;
    ok(koloSetDevice(0));
    for (int round = 0; round < 20; round++) {
        pthread_t aborter;
        void *rc;
        ok(ncclCommInitAll(pair, 2, NULL));
        ok(ncclRecv(&y, 1, ncclInt32, 1, pair[0], NULL));
        assert_int_equal(pthread_create(&aborter, NULL, abort_when_in_call, pair[0]), 0);
        assert_int_equal(round % 2 ? ncclCommFinalize(pair[0]) : ncclCommDestroy(pair[0]), ncclInternalError);
        pthread_join(aborter, &rc);
        assert_null(rc);
        ncclCommDestroy(pair[1]); /* a failure if it knows of the abort by now */
        assert_int_equal(koloStreamSynchronize(NULL), ncclInternalError);
    }
}

/* ---- handles of destroyed communicators ---- */

static void expect_stale(ncclComm_t c)
{
    float a = 1, b;
    int n;
    ncclResult_t async;

    expect_refused(ncclAllReduce(&a, &b, 1, ncclFloat, ncclSum, c, NULL), ncclInvalidArgument, "no communicator");
    expect_refused(ncclSend(&a, 1, ncclFloat, 0, c, NULL), ncclInvalidArgument, "no communicator");
    expect_refused(ncclCommCount(c, &n), ncclInvalidArgument, "no communicator");
    expect_refused(ncclCommGetAsyncError(c, &async), ncclInvalidArgument, "no communicator");
    expect_refused(ncclCommFinalize(c), ncclInvalidArgument, "no communicator");
    expect_refused(ncclCommDestroy(c), ncclInvalidArgument, "no communicator");
    expect_refused(ncclCommAbort(c), ncclInvalidArgument, "no communicator");
    assert_non_null(strstr(ncclGetLastError(c), "ncclCommAbort")); /* asking is no error of its own */
    ok(ncclGroupStart());
    expect_refused(ncclAllReduce(&a, &b, 1, ncclFloat, ncclSum, c, NULL), ncclInvalidArgument, "no communicator");
    expect_refused(ncclGroupEnd(), ncclInvalidArgument, "no communicator");
}

/* Also when another communicator uses its slot. */
static void a_handle_is_worth_nothing_after_the_end(void **state)
{
    ncclComm_t one, heir;

    (void)state;
    for (int abort = 0; abort < 2; abort++) {
        ok(ncclCommInitAll(&one, 1, NULL));
        ok(abort ? ncclCommAbort(one) : ncclCommDestroy(one));
        expect_stale(one);
        ok(ncclCommInitAll(&heir, 1, NULL));
        expect_stale(one);
        ok(ncclCommDestroy(heir));
    }
    expect_stale((ncclComm_t)(void *)state); /* never was a handle */
}

struct caller {
    ncclComm_t comm;
    _Atomic uint32_t calls;
    ncclResult_t rc;
    float x, y; /* queued operations still use them when the caller leaves, until the abort returns */
};

static void *call_until_refused(void *arg)
{
    struct caller *c = arg;

    while (!(c->rc = ncclAllReduce(&c->x, &c->y, 1, ncclFloat, ncclSum, c->comm, NULL)))
        kl_fetch_add_relaxed(&c->calls, 1);
    return NULL;
}

/* At any point of its calls: the current one fails with the abort, the next finds no communicator. */
static void an_abort_meets_the_next_call(void **state)
{
    (void)state;
    ok(koloSetDevice(0));
    for (uint32_t round = 0; round < 200; round++) {
        struct caller c = {.rc = ncclSuccess};
        pthread_t thread;

        ok(ncclCommInitAll(&c.comm, 1, NULL));
        assert_int_equal(pthread_create(&thread, NULL, call_until_refused, &c), 0);
        while (kl_load_relaxed(&c.calls) < round) sched_yield();
        ok(ncclCommAbort(c.comm));
        pthread_join(thread, NULL);
        if (c.rc != ncclInternalError && c.rc != ncclInvalidArgument) fail_msg("round %u: %d", round, c.rc);
        koloStreamSynchronize(NULL); /* a failure if the abort met work */
    }
}

static void *watch(void *arg)
{
    struct caller *c = arg;
    ncclResult_t async;
    int n;

    while (!(c->rc = ncclCommGetAsyncError(c->comm, &async)) && !(c->rc = ncclCommCount(c->comm, &n)))
        kl_store_release(&c->calls, 1);
    return NULL;
}

/* Threads that watch a communicator need not be told that it ends. */
static void a_destroy_meets_a_watcher(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct caller c = {.rc = ncclSuccess};
        pthread_t thread;

        ok(ncclCommInitAll(&c.comm, 1, NULL));
        assert_int_equal(pthread_create(&thread, NULL, watch, &c), 0);
        while (!kl_load_acquire(&c.calls)) sched_yield();
        ok(ncclCommDestroy(c.comm));
        pthread_join(thread, NULL);
        assert_int_equal(c.rc, ncclInvalidArgument);
    }
}

static void *end_it(void *arg)
{
    struct caller *c = arg;

    c->rc = ncclCommAbort(c->comm);
    return NULL;
}

static void of_two_aborts_one_is_too_late(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct caller c[2] = {{.rc = ncclSuccess}};
        pthread_t thread[2];

        ok(ncclCommInitAll(&c[0].comm, 1, NULL));
        c[1].comm = c[0].comm;
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, end_it, &c[i]), 0);
        for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
        assert_int_equal(c[0].rc + c[1].rc, ncclInvalidArgument);
        assert_true(!c[0].rc || !c[1].rc);
    }
}

static void *destroy_now(void *arg)
{
    return (void *)(uintptr_t)ncclCommDestroy(arg);
}

/* The destroy waits for an operation behind another communicator's, which does not end. */
static void an_abort_ends_a_destroy_behind_another_communicator(void **state)
{
    ncclComm_t stuck[2], pair[2];
    pthread_t destroyer;
    int32_t x = 1, y;
    void *rc;

    (void)state;
    ok(koloSetDevice(0));
    ok(ncclCommInitAll(stuck, 2, NULL));
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclRecv(&y, 1, ncclInt32, 1, stuck[0], NULL));
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], NULL));
    assert_int_equal(pthread_create(&destroyer, NULL, destroy_now, pair[0]), 0);
    while (!kl_handle_callers(pair[0])) sched_yield();
    ok(ncclCommAbort(pair[0]));
    pthread_join(destroyer, &rc);
    assert_int_equal((uintptr_t)rc, ncclInternalError);
    ok(ncclCommAbort(pair[1]));
    for (int r = 0; r < 2; r++) ok(ncclCommAbort(stuck[r]));
    (void)koloStreamSynchronize(NULL); /* reports once that the aborts withdrew work */
    ok(koloStreamSynchronize(NULL));
}

/* ---- those that never begin ---- */

/* Some threads of a group cannot be created: their ranks never join, and the others do not wait for them. */
static void a_group_that_gets_no_threads_fails_at_once(void **state)
{
    ncclComm_t comms[3] = {NULL};
    pthread_attr_t usual, huge;
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id)); /* the library's own threads exist */
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    expect_refused(ncclCommInitAll(comms, 3, NULL), ncclSystemError, "cannot start a thread");
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    for (int i = 0; i < 3; i++) assert_null(comms[i]);
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
    ok(ncclCommInitAll(comms, 3, NULL));
    for (int i = 0; i < 3; i++) ok(ncclCommDestroy(comms[i]));
    ok(ncclCommInitRank(&comms[0], 1, id, 0)); /* no rank waits at the id any more */
    ok(ncclCommDestroy(comms[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_meets_an_open_group),
        cmocka_unit_test(an_abort_ends_a_finalize_and_a_destroy),
        cmocka_unit_test(a_handle_is_worth_nothing_after_the_end),
        cmocka_unit_test(an_abort_meets_the_next_call),
        cmocka_unit_test(a_destroy_meets_a_watcher),
        cmocka_unit_test(of_two_aborts_one_is_too_late),
        cmocka_unit_test(an_abort_ends_a_destroy_behind_another_communicator),
        cmocka_unit_test(a_group_that_gets_no_threads_fails_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
