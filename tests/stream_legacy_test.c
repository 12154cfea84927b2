/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default stream of a device and its blocking streams are in order with each other; others take no part. Handles 0x1 and 0x2.
 */
#include "tests/stream_check.h"

#include <pthread.h>
#include <unistd.h>

enum { STREAMS = 8, THREADS = 4, OFTEN = 300, RANKS = 2 };

static void expect_held(koloStream_t s)
{
    for (int i = 0; i < 20; i++) assert_int_equal(koloStreamQuery(s), ncclInProgress);
}

/* ---- order ---- */

static void the_default_stream_waits_for_blocking_ones(void **state)
{
    koloStream_t s[STREAMS];
    int n = 0, seen = -1;
    flag go = 0;

    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        s[i] = make_stream(KOLO_STREAM_BLOCKING);
        ok(koloStreamLaunch(s[i], await_flag, &go));
    }
    ok(koloStreamLaunch(s[STREAMS / 2], increment, &n));
    ok(koloMemcpyAsync(&seen, &n, sizeof n, NULL));
    expect_held(NULL);
    assert_int_equal(seen, -1);
    raise_flag(&go);
    ok(koloStreamSynchronize(koloStreamLegacy));
    assert_int_equal(seen, 1);
    for (int i = 0; i < STREAMS; i++) ok(koloStreamDestroy(s[i]));
}

static void blocking_streams_wait_for_the_default_one(void **state)
{
    koloStream_t before = make_stream(KOLO_STREAM_BLOCKING), s = make_stream(KOLO_STREAM_BLOCKING);
    int n = 0, seen = -1;
    flag go = 0;

    (void)state;
    ok(koloStreamLaunch(before, increment, &n)); /* does not wait */
    ok(koloStreamLaunch(koloStreamLegacy, await_flag, &go));
    ok(koloStreamLaunch(NULL, increment, &n));
    ok(koloMemcpyAsync(&seen, &n, sizeof n, s));
    expect_held(s);
    raise_flag(&go);
    ok(koloStreamSynchronize(s));
    assert_int_equal(seen, 2);
    ok(koloStreamDestroy(before));
    ok(koloStreamDestroy(s));
}

static void other_streams_take_no_part(void **state)
{
    koloStream_t blocking = make_stream(KOLO_STREAM_BLOCKING), other = make_stream(KOLO_STREAM_DEFAULT), elsewhere;
    flag go = 0, done = 0;
    int n = 0;

    (void)state;
    ok(koloSetDevice(1));
    elsewhere = make_stream(KOLO_STREAM_BLOCKING);
    ok(koloSetDevice(0));
    ok(koloStreamLaunch(NULL, await_flag, &go));
    ok(koloStreamLaunch(other, increment, &n));
    ok(koloStreamSynchronize(other));
    ok(koloStreamLaunch(elsewhere, increment, &n));
    ok(koloStreamSynchronize(elsewhere));
    assert_int_equal(n, 2);
    raise_flag(&go);
    ok(koloStreamSynchronize(NULL));
    ok(koloStreamLaunch(other, await_flag, &done)); /* nor does the default stream wait for them */
    ok(koloStreamLaunch(NULL, increment, &n));
    ok(koloStreamSynchronize(NULL));
    raise_flag(&done);
    ok(koloStreamDestroy(other));
    ok(koloStreamDestroy(blocking));
    ok(koloStreamDestroy(elsewhere));
}

static void who_waits_for_the_default_stream_waits_for_blocking_ones(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_BLOCKING);
    flag go = 0;
    int n = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloStreamLaunch(s, increment, &n));
    expect_held(NULL);
    raise_flag(&go);
    ok(koloStreamSynchronize(NULL));
    assert_int_equal(n, 1);
    ok(koloStreamDestroy(s));
}

static void *wait_for_default(void *unused)
{
    (void)unused;
    ok(koloStreamSynchronize(NULL));
    return NULL;
}

/* A query, or a wait, adds no work to the default stream that a blocking stream would have to wait for. */
static void blocking_streams_do_not_wait_for_who_asks_for_the_default_one(void **state)
{
    koloStream_t a = make_stream(KOLO_STREAM_BLOCKING), b = make_stream(KOLO_STREAM_BLOCKING);
    pthread_t thread;

    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        flag go = 0;
        ok(koloStreamLaunch(a, await_flag, &go));
        expect_held(NULL);
        if (waits) assert_int_equal(pthread_create(&thread, NULL, wait_for_default, NULL), 0);
        ok(koloStreamLaunch(b, raise_flag, &go));
        ok(koloStreamSynchronize(a));
        if (waits) pthread_join(thread, NULL);
    }
    ok(koloStreamQuery(NULL));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
}

/* Each piece of work sees the writes of the one before, on whichever stream that was. */
static void work_goes_to_and_fro(void **state)
{
    koloStream_t s[STREAMS];
    static int chain[4 * OFTEN];
    static flag up = 1;
    int n = 0;

    (void)state;
    for (int i = 0; i < STREAMS; i++) s[i] = make_stream(KOLO_STREAM_BLOCKING);
    for (int i = 0; i < OFTEN; i++) {
        ok(koloStreamLaunch(s[i % STREAMS], increment, &n));
        ok(koloMemcpyAsync(&chain[2 * i], &n, sizeof n, NULL));
        ok(koloStreamLaunch(NULL, increment, &n));
        ok(koloMemcpyAsync(&chain[2 * i + 1], &n, sizeof n, s[(i + 1) % STREAMS]));
        ok(koloStreamLaunch(koloStreamLegacy, await_flag, &up));
    }
    ok(koloDeviceSynchronize());
    for (int i = 0; i < 2 * OFTEN; i++) assert_int_equal(chain[i], i + 1);
    for (int i = 0; i < STREAMS; i++) ok(koloStreamDestroy(s[i]));
}

static void *give_work(void *count)
{
    koloStream_t own = make_stream(KOLO_STREAM_BLOCKING);

    for (int i = 0; i < OFTEN; i++) {
        ok(koloStreamLaunch(i % 3 == 0 ? NULL : i % 3 == 1 ? own : koloStreamPerThread, raise_flag, count));
        if (i % 50 == 0) ok(koloStreamSynchronize(i % 100 ? own : NULL));
    }
    ok(koloStreamDestroy(own));
    return NULL;
}

static void threads_that_use_both_kinds_do_not_tie_them_up(void **state)
{
    pthread_t thread[THREADS];
    flag f = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, give_work, &f), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    ok(koloDeviceSynchronize());
}

/* ---- handles ---- */

static void handles_of_the_default_stream_are_one_stream(void **state)
{
    unsigned flags = 42;
    int device = -1;
    flag go = 0;
    int n = 0;

    (void)state;
    ok(koloStreamLaunch(koloStreamLegacy, await_flag, &go));
    ok(koloStreamLaunch(NULL, increment, &n));
    expect_held(koloStreamLegacy);
    assert_int_equal(n, 0);
    raise_flag(&go);
    ok(koloStreamSynchronize(NULL));
    assert_int_equal(n, 1);
    ok(koloSetDevice(1));
    ok(koloStreamGetInfo(koloStreamLegacy, &device, &flags));
    assert_true(device == 1 && flags == KOLO_STREAM_DEFAULT);
    ok(koloStreamGetInfo(koloStreamPerThread, &device, &flags));
    assert_true(device == 1 && flags == KOLO_STREAM_BLOCKING);
    ok(koloSetDevice(0));
    ok(koloStreamGetInfo(koloStreamPerThread, &device, NULL));
    assert_int_equal(device, 0);
    expect_refused(koloStreamDestroy(koloStreamLegacy), ncclInvalidArgument, "stay");
    expect_refused(koloStreamRelease(koloStreamPerThread), ncclInvalidArgument, "stay");
}

struct threads_work {
    flag go, done;
};

static void *use_own_stream(void *work)
{
    struct threads_work *w = work;

    ok(koloStreamLaunch(koloStreamPerThread, await_flag, &w->go));
    ok(koloStreamLaunch(koloStreamPerThread, raise_flag, &w->done));
    return NULL; /* its queued work still runs */
}

static void each_thread_has_a_stream_of_its_own(void **state)
{
    struct threads_work w = {0};
    pthread_t thread;
    int n = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, &w), 0);
    pthread_join(thread, NULL);
    ok(koloStreamLaunch(koloStreamPerThread, increment, &n));
    ok(koloStreamSynchronize(koloStreamPerThread)); /* not behind the other's */
    assert_true(n == 1 && !w.done);
    raise_flag(&w.go);
    await_flag(&w.done);
    ok(koloDeviceSynchronize());
}

/* ---- collectives, events, captures ---- */

static void collectives_are_in_order_too(void **state)
{
    ncclComm_t comm[RANKS];
    koloStream_t s[RANKS];
    int32_t buffer[RANKS], copy[RANKS];

    (void)state;
    ok(ncclCommInitAll(comm, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        s[r] = make_stream(KOLO_STREAM_BLOCKING);
    }
    for (int i = 0; i < 30; i++) {
        for (int r = 0; r < RANKS; r++) {
            ok(koloSetDevice(r));
            buffer[r] = copy[r] = 0;
            ok(koloStreamLaunch(i % 2 ? s[r] : NULL, increment, &buffer[r]));
            if (i % 3 == 0) ok(ncclGroupStart());
            ok(ncclAllReduce(&buffer[r], &buffer[r], 1, ncclInt32, ncclSum, comm[r], i % 2 ? koloStreamLegacy : s[r]));
            if (i % 3 == 0) ok(ncclGroupEnd());
            ok(koloMemcpyAsync(&copy[r], &buffer[r], sizeof copy[r], i % 2 ? s[r] : NULL));
        }
        for (int r = 0; r < RANKS; r++) {
            ok(koloSetDevice(r));
            ok(koloDeviceSynchronize());
            assert_int_equal(copy[r], RANKS);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        ok(koloStreamDestroy(s[r]));
        ok(ncclCommDestroy(comm[r]));
    }
    ok(koloSetDevice(0));
}

static void an_event_of_the_default_stream_is_behind_blocking_work(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_BLOCKING), other = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e;
    flag go = 0;

    (void)state;
    ok(koloEventCreate(&e));
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloEventRecord(e, NULL));
    ok(koloStreamWaitEvent(other, e, 0));
    expect_held(other);
    raise_flag(&go);
    ok(koloStreamSynchronize(other));
    ok(koloEventDestroy(e));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
}

static void expect_implicit(ncclResult_t rc, koloStream_t captures)
{
    koloGraph_t graph;

    assert_int_equal(rc, ncclInvalidUsage);
    assert_int_equal(koloGetLastReason(), koloReasonCaptureImplicit);
    assert_int_equal(koloStreamEndCapture(captures, &graph), ncclInvalidUsage);
    assert_int_equal(koloGetLastReason(), koloReasonCaptureInvalidated);
    ok(koloStreamBeginCapture(captures, koloCaptureModeGlobal));
}

static void the_default_stream_cannot_wait_for_a_stream_that_captures(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_BLOCKING), other = make_stream(KOLO_STREAM_DEFAULT);
    koloGraph_t graph;
    ncclComm_t comm;
    char a = 0;

    (void)state;
    ok(ncclCommInitAll(&comm, 1, NULL));
    ok(koloStreamBeginCapture(s, koloCaptureModeGlobal));
    expect_implicit(koloMemsetAsync(&a, 1, 1, NULL), s);
    expect_implicit(koloStreamSynchronize(NULL), s);
    expect_implicit(koloStreamQuery(NULL), s);
    expect_implicit(ncclAllReduce(&a, &a, 1, ncclInt8, ncclSum, comm, NULL), s);
    ok(koloMemsetAsync(&a, 1, 1, other));
    ok(koloStreamSynchronize(other));
    ok(koloStreamEndCapture(s, &graph));
    ok(koloGraphDestroy(graph));
    ok(koloStreamBeginCapture(other, koloCaptureModeGlobal));
    ok(koloMemsetAsync(&a, 1, 1, NULL)); /* a call that takes no part */
    ok(koloStreamEndCapture(other, &graph));
    ok(koloGraphDestroy(graph));
    ok(koloStreamSynchronize(NULL));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
    ok(ncclCommDestroy(comm));
}

static void a_graph_is_in_order_as_its_stream_is(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_BLOCKING);
    koloGraphExec_t exec;
    koloGraph_t graph;
    int n = 0, seen = -1;
    flag go = 0;

    (void)state;
    ok(koloStreamBeginCapture(s, koloCaptureModeGlobal));
    ok(koloStreamLaunch(s, increment, &n));
    ok(koloStreamEndCapture(s, &graph));
    ok(koloGraphInstantiate(&exec, graph));
    ok(koloGraphDestroy(graph));
    ok(koloStreamLaunch(NULL, await_flag, &go));
    ok(koloGraphLaunch(exec, s));
    ok(koloMemcpyAsync(&seen, &n, sizeof n, NULL));
    expect_held(s);
    assert_int_equal(n, 0);
    raise_flag(&go);
    ok(koloStreamSynchronize(NULL));
    assert_int_equal(seen, 1);
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_stream_waits_for_blocking_ones),
        cmocka_unit_test(blocking_streams_wait_for_the_default_one),
        cmocka_unit_test(other_streams_take_no_part),
        cmocka_unit_test(who_waits_for_the_default_stream_waits_for_blocking_ones),
        cmocka_unit_test(blocking_streams_do_not_wait_for_who_asks_for_the_default_one),
        cmocka_unit_test(work_goes_to_and_fro),
        cmocka_unit_test(threads_that_use_both_kinds_do_not_tie_them_up),
        cmocka_unit_test(handles_of_the_default_stream_are_one_stream),
        cmocka_unit_test(each_thread_has_a_stream_of_its_own),
        cmocka_unit_test(collectives_are_in_order_too),
        cmocka_unit_test(an_event_of_the_default_stream_is_behind_blocking_work),
        cmocka_unit_test(the_default_stream_cannot_wait_for_a_stream_that_captures),
        cmocka_unit_test(a_graph_is_in_order_as_its_stream_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
