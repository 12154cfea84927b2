/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that capture, and graphs: captured work does not run, and runs as often as it is launched, with the contents
 * of its buffers then. Calls that cannot be captured are refused with the reason that CUDA has an error for.
 */
#include "tests/hang.h"
#include "tests/stream_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAUNCHES = 100 };

/* ---- work that runs ---- */

static void nothing_runs_before_the_launch_and_all_at_each(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    int n = 0, copy = -1, zero = -1;
    koloGraph_t graph;
    size_t nodes;

    (void)state;
    ok(koloStreamLaunch(s, increment, &n));
    ok(koloMemcpyAsync(&copy, &n, sizeof n, s));
    ok(koloMemsetAsync(&zero, 0, sizeof zero, s));
    ok(koloStreamEndCapture(s, &graph));
    ok(koloGraphGetNodeCount(graph, &nodes));
    assert_int_equal(nodes, 3);
    koloGraphExec_t exec = instantiate(graph);
    ok(koloStreamSynchronize(s));
    assert_true(n == 0 && copy == -1 && zero == -1);
    for (int i = 1; i <= LAUNCHES; i++) {
        ok(koloGraphLaunch(exec, s));
        if (i % 10) continue;
        ok(koloStreamSynchronize(s));
        assert_true(n == i && copy == i && zero == 0);
    }
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(s));
}

static void an_empty_graph_does_nothing(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloGraphExec_t exec = end(s);

    (void)state;
    ok(koloGraphLaunch(exec, s));
    ok(koloGraphLaunch(exec, NULL));
    ok(koloStreamDestroy(s));
    ok(koloGraphExecDestroy(exec));
}

struct overlap {
    _Atomic int inside, most;
};

static void enter_and_leave(void *overlap)
{
    struct overlap *o = overlap;
    int now = kl_fetch_add_acq_rel(&o->inside, 1) + 1;

    if (now > kl_load_relaxed(&o->most)) kl_store_relaxed(&o->most, now);
    for (int i = 0; i < 20; i++) sched_yield();
    kl_fetch_sub_acq_rel(&o->inside, 1);
}

struct launcher {
    koloGraphExec_t exec;
    koloStream_t stream;
};

static void *launch_often(void *launcher)
{
    struct launcher *l = launcher;

    for (int i = 0; i < 50; i++) ok(koloGraphLaunch(l->exec, l->stream));
    ok(koloStreamSynchronize(l->stream));
    return NULL;
}

static void launches_of_one_exec_run_one_after_the_other(void **state)
{
    enum { THREADS = 4 };
    koloStream_t s = begin(koloCaptureModeGlobal);
    struct overlap o = {0};
    pthread_t thread[THREADS];
    struct launcher l[THREADS];

    (void)state;
    ok(koloStreamLaunch(s, enter_and_leave, &o));
    koloGraphExec_t exec = end(s);
    for (int i = 0; i < THREADS; i++) {
        l[i] = (struct launcher){.exec = exec, .stream = make_stream(KOLO_STREAM_DEFAULT)};
        assert_int_equal(pthread_create(&thread[i], NULL, launch_often, &l[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ok(koloStreamDestroy(l[i].stream));
    }
    assert_int_equal(o.most, 1);
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(s));
}

static void what_is_kept_goes_when_the_last_launch_has_run(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    flag go = 0, gone = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloStreamCaptureKeep(s, raise_flag, &gone));
    koloGraphExec_t exec = end(s);
    ok(koloGraphLaunch(exec, s));
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamRelease(s));
    usleep(5000);
    assert_int_equal(gone, 0);
    raise_flag(&go);
    await_flag(&gone);
}

static void a_graph_that_was_never_made_keeps_nothing(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    flag gone = 0;

    (void)state;
    ok(koloStreamCaptureKeep(s, raise_flag, &gone));
    ok(koloStreamDestroy(s)); /* the capture cannot end any more */
    assert_int_equal(gone, 1);
    s = make_stream(KOLO_STREAM_DEFAULT);
    expect_reason(koloStreamCaptureKeep(s, raise_flag, &gone), koloReasonCaptureState);
    ok(koloStreamDestroy(s));
}

/* Calls of programs when an object is destroyed. */
static void ask_the_library(void *gone)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    koloCaptureStatus_t status;

    ok(koloCaptureUnsafeCall());
    ok(koloStreamGetCaptureInfo(s, &status, NULL));
    ok(koloStreamDestroy(s));
    raise_flag(gone);
}

static void what_is_kept_may_use_the_library_when_it_goes(void **state)
{
    koloStream_t s;
    koloGraph_t graph;

    (void)state;
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        flag gone = 0;
        s = begin(koloCaptureModeGlobal);
        ok(koloStreamCaptureKeep(s, ask_the_library, &gone));
        if (!destroyed) {
            expect_reason(koloStreamSynchronize(s), koloReasonCaptureUnsupported);
            expect_reason(koloStreamEndCapture(s, &graph), koloReasonCaptureInvalidated);
        }
        ok(koloStreamDestroy(s));
        assert_int_equal(gone, 1);
    }
}

struct relaunch {
    koloGraphExec_t exec;
    koloStream_t stream;
};

static void launch_again(void *relaunch)
{
    const struct relaunch *r = relaunch;

    ok(koloGraphLaunch(r->exec, r->stream));
}

static void what_an_update_drops_may_launch_the_graph(void **state)
{
    struct relaunch r = {.stream = make_stream(KOLO_STREAM_DEFAULT)};
    int n = 0;

    (void)state;
    for (int graphs = 0; graphs < 2; graphs++) {
        koloGraph_t graph;
        koloStream_t s = begin(koloCaptureModeGlobal);
        ok(koloStreamLaunch(s, increment, &n));
        if (!graphs) ok(koloStreamCaptureKeep(s, launch_again, &r));
        ok(koloStreamEndCapture(s, &graph));
        if (graphs) ok(koloGraphExecUpdate(r.exec, graph, NULL, NULL));
        if (!graphs) ok(koloGraphInstantiate(&r.exec, graph));
        ok(koloGraphDestroy(graph));
        ok(koloStreamDestroy(s));
    }
    ok(koloStreamSynchronize(r.stream));
    assert_int_equal(n, 1);
    ok(koloGraphExecDestroy(r.exec));
    ok(koloStreamDestroy(r.stream));
}

struct gate {
    flag reached, open, passed;
};

static void pass_gate(void *gate)
{
    struct gate *g = gate;

    raise_flag(&g->reached);
    await_flag(&g->open);
    raise_flag(&g->passed);
}

/* It runs like any function of the program: others are not kept by it. */
static void what_is_kept_may_take_its_time_to_go(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    struct gate release = {0};
    flag go = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloStreamCaptureKeep(s, pass_gate, &release));
    koloGraphExec_t exec = end(s);
    ok(koloGraphLaunch(exec, s));
    ok(koloGraphExecDestroy(exec));
    raise_flag(&go);
    ok(koloStreamSynchronize(s));
    await_flag(&release.reached);
    for (int i = 0; i < 3; i++) {
        flag done = 0;
        ok(koloStreamLaunch(s, raise_flag, &done));
        await_flag(&done); /* the background thread is free */
    }
    raise_flag(&release.open);
    await_flag(&release.passed);
    ok(koloStreamDestroy(s));
}

static void on_a_stream_that_runs_inside_the_call_a_launch_is_done_at_once(void **state)
{
    koloStream_t s, captured = begin(koloCaptureModeGlobal);
    int n = 0;

    (void)state;
    ok(koloStreamLaunch(captured, increment, &n));
    koloGraphExec_t exec = end(captured);
    ok(koloStreamCreate(&s, KOLO_STREAM_INLINE));
    ok(koloGraphLaunch(exec, s));
    assert_int_equal(n, 1);
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(captured));
}

/* ---- update ---- */

static koloGraph_t capture_copy(void (*fn)(void *), int *to, const int *from)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloGraph_t graph;

    if (fn) ok(koloStreamLaunch(s, fn, to));
    ok(koloMemcpyAsync(to, from, sizeof *to, s));
    ok(koloStreamEndCapture(s, &graph));
    ok(koloStreamDestroy(s));
    return graph;
}

static void an_update_takes_another_graph_of_the_same_shape(void **state)
{
    int from[2] = {1, 2}, to[2] = {0, 0};
    koloGraph_t first = capture_copy(increment, &to[0], &from[0]), second = capture_copy(increment, &to[1], &from[1]);
    koloGraph_t shorter = capture_copy(NULL, &to[0], &from[0]);
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloGraphUpdateResult_t result;
    koloGraphExec_t exec;
    koloGraph_t other;
    size_t node;

    (void)state;
    ok(koloMemcpyAsync(&to[0], &from[0], sizeof to[0], s));
    ok(koloStreamLaunch(s, increment, &to[0]));
    ok(koloStreamEndCapture(s, &other));
    ok(koloGraphInstantiate(&exec, first));
    ok(koloGraphLaunch(exec, s)); /* in flight */
    ok(koloGraphExecUpdate(exec, second, &result, &node));
    assert_int_equal(result, koloGraphUpdateSuccess);
    ok(koloGraphLaunch(exec, s));
    ok(koloStreamSynchronize(s));
    assert_true(to[0] == 1 && to[1] == 2);
    expect_reason(koloGraphExecUpdate(exec, shorter, &result, &node), koloReasonGraphUpdate);
    assert_int_equal(result, koloGraphUpdateTopologyChanged);
    expect_reason(koloGraphExecUpdate(exec, other, &result, &node), koloReasonGraphUpdate);
    assert_true(result == koloGraphUpdateNodeTypeChanged && node == 0);
    to[1] = 0;
    ok(koloGraphLaunch(exec, s)); /* as before */
    ok(koloStreamSynchronize(s));
    assert_int_equal(to[1], 2);
    koloGraph_t all[] = {first, second, shorter, other};
    for (int i = 0; i < 4; i++) ok(koloGraphDestroy(all[i]));
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(s));
}

/* ---- refusals ---- */

static void what_waits_invalidates_a_capture(void **state)
{
    koloStream_t s;

    (void)state;
    expect_reason(koloStreamSynchronize(s = begin(koloCaptureModeGlobal)), koloReasonCaptureUnsupported);
    expect_invalidated(s);
    expect_reason(koloStreamQuery(s = begin(koloCaptureModeRelaxed)), koloReasonCaptureUnsupported);
    expect_invalidated(s);
    s = begin(koloCaptureModeGlobal);
    expect_reason(koloDeviceSynchronize(), koloReasonCaptureUnsupported);
    expect_invalidated(s);
}

static void a_graph_is_no_part_of_another(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloGraphExec_t exec = end(s);

    (void)state;
    ok(koloStreamBeginCapture(s, koloCaptureModeGlobal));
    expect_reason(koloGraphLaunch(exec, s), koloReasonCaptureUnsupported);
    expect_invalidated(s);
    ok(koloGraphExecDestroy(exec));
}

static void *end_it(void *stream)
{
    koloGraph_t graph;

    if (koloStreamEndCapture(stream, &graph)) return (void *)(uintptr_t)koloGetLastReason();
    ok(koloGraphDestroy(graph));
    return NULL;
}

static uintptr_t end_in_another_thread(koloStream_t s)
{
    pthread_t thread;
    void *reason;

    assert_int_equal(pthread_create(&thread, NULL, end_it, s), 0);
    pthread_join(thread, &reason);
    return (uintptr_t)reason;
}

static void a_capture_ends_where_it_began(void **state)
{
    koloStream_t a = begin(koloCaptureModeThreadLocal), b = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    koloGraph_t graph;

    (void)state;
    assert_int_equal(end_in_another_thread(a), koloReasonCaptureWrongThread);
    expect_invalidated(a);
    a = begin(koloCaptureModeThreadLocal);
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    expect_reason(koloStreamEndCapture(b, &graph), koloReasonCaptureUnmatched);
    expect_invalidated(a);
    a = begin(koloCaptureModeRelaxed);
    assert_int_equal(end_in_another_thread(a), 0);
    expect_reason(koloStreamEndCapture(a, &graph), koloReasonCaptureState);
    ok(koloStreamBeginCapture(a, koloCaptureModeGlobal));
    expect_reason(koloStreamBeginCapture(a, koloCaptureModeGlobal), koloReasonCaptureState);
    ok(koloGraphExecDestroy(end(a)));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
    ok(koloEventDestroy(e));
}

static void a_stream_that_goes_takes_its_capture_along(void **state)
{
    koloStream_t a = begin(koloCaptureModeGlobal), b = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);

    (void)state;
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloStreamDestroy(b));
    expect_invalidated(a);
    ok(koloEventDestroy(e));
}

static void *begin_on_own_stream(void *gone)
{
    ok(koloStreamBeginCapture(koloStreamPerThread, koloCaptureModeGlobal));
    ok(koloStreamCaptureKeep(koloStreamPerThread, raise_flag, gone));
    return NULL;
}

static void *join_with_own_stream(void *event)
{
    ok(koloStreamWaitEvent(koloStreamPerThread, event, 0));
    return NULL;
}

static void call_in_another_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, NULL);
}

static void a_thread_that_ends_takes_its_capture_along(void **state)
{
    koloStream_t a, next;
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    char byte = 0;
    flag gone = 0;

    (void)state;
    call_in_another_thread(begin_on_own_stream, &gone);
    assert_int_equal(gone, 1);
    ok(koloCaptureUnsafeCall()); /* no capture is left */
    a = begin(koloCaptureModeGlobal);
    ok(koloEventRecord(e, a));
    call_in_another_thread(join_with_own_stream, e);
    next = make_stream(KOLO_STREAM_DEFAULT); /* perhaps in the place of the thread's */
    expect_invalidated(a);
    ok(koloMemsetAsync(&byte, 1, 1, next));
    ok(koloStreamDestroy(next));
    assert_int_equal(byte, 1);
    ok(koloEventDestroy(e));
}

/* Its parent's captures are none of its own: the streams run the child's work, and no call is unsafe. */
static int use_in_child(koloStream_t s, koloEvent_t e)
{
    koloCaptureStatus_t status;
    koloGraph_t graph;
    char a = 0;

    if (koloStreamGetCaptureInfo(s, &status, NULL) || status != koloCaptureStatusNone) return 1;
    if (koloCaptureUnsafeCall()) return 2;
    if (koloMemsetAsync(&a, 1, 1, s) || koloStreamSynchronize(s) || a != 1) return 3;
    if (koloStreamEndCapture(s, &graph) != ncclInvalidUsage) return 4;
    if (koloStreamWaitEvent(s, e, 0) != ncclInvalidUsage || koloGetLastReason() != koloReasonCapturedEvent) return 5;
    if (koloStreamBeginCapture(s, koloCaptureModeGlobal) || koloStreamEndCapture(s, &graph)) return 6;
    return koloGraphDestroy(graph) ? 7 : 0;
}

static void a_forked_child_captures_nothing(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    int status, n = 0;

    (void)state;
    ok(koloStreamLaunch(s, increment, &n));
    ok(koloEventRecord(e, s));
    pid_t child = fork();
    if (!child) {
        alarm(kolo_test_hang_s());
        _exit(use_in_child(s, e));
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    koloGraphExec_t exec = end(s); /* the parent's goes on */
    ok(koloGraphLaunch(exec, s));
    ok(koloStreamSynchronize(s));
    assert_int_equal(n, 1);
    ok(koloGraphExecDestroy(exec));
    ok(koloEventDestroy(e));
    ok(koloStreamDestroy(s));
}

static koloCaptureMode_t exchange_mode(koloCaptureMode_t mode)
{
    ok(koloThreadExchangeCaptureMode(&mode));
    return mode;
}

static void *call_unsafe(void *mode)
{
    assert_int_equal(exchange_mode(*(koloCaptureMode_t *)mode), koloCaptureModeGlobal); /* a thread's first */
    return (void *)(uintptr_t)koloCaptureUnsafeCall();
}

static bool allows_another_thread(koloCaptureMode_t mode)
{
    pthread_t thread;
    void *rc;

    assert_int_equal(pthread_create(&thread, NULL, call_unsafe, &mode), 0);
    pthread_join(thread, &rc);
    return !rc;
}

static void modes_say_who_may_make_unsafe_calls(void **state)
{
    static const struct {
        koloCaptureMode_t capture, caller;
        bool own, other;
    } cases[] = {
        {koloCaptureModeGlobal, koloCaptureModeGlobal, false, false},
        {koloCaptureModeGlobal, koloCaptureModeThreadLocal, false, true},
        {koloCaptureModeGlobal, koloCaptureModeRelaxed, true, true},
        {koloCaptureModeThreadLocal, koloCaptureModeGlobal, false, true},
        {koloCaptureModeThreadLocal, koloCaptureModeThreadLocal, false, true},
        {koloCaptureModeThreadLocal, koloCaptureModeRelaxed, true, true},
        {koloCaptureModeRelaxed, koloCaptureModeGlobal, true, true},
        {koloCaptureModeRelaxed, koloCaptureModeRelaxed, true, true},
    };

    (void)state;
    ok(koloCaptureUnsafeCall());
    FOR_EACH_CASE(c, cases)
    {
        for (int other = 0; other < 2; other++) {
            koloStream_t s = begin(c->capture);
            koloGraph_t graph;
            koloCaptureMode_t before = exchange_mode(c->caller);
            bool allowed = other ? allows_another_thread(c->caller) : !koloCaptureUnsafeCall();
            exchange_mode(before);
            assert_int_equal(allowed, other ? c->other : c->own);
            assert_int_equal(koloStreamEndCapture(s, &graph), allowed ? ncclSuccess : ncclInvalidUsage);
            ok(koloGraphDestroy(graph));
            ok(koloStreamDestroy(s));
        }
    }
}

static void what_is_wrong_is_refused(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    koloCaptureMode_t mode = (koloCaptureMode_t)9;
    koloGraph_t graph;
    koloGraphExec_t exec;

    (void)state;
    expect_reason(koloStreamBeginCapture(NULL, koloCaptureModeGlobal), koloReasonCaptureUnsupported);
    expect_reason(koloStreamBeginCapture(koloStreamLegacy, koloCaptureModeGlobal), koloReasonCaptureUnsupported);
    expect_refused(koloStreamBeginCapture(s, mode), ncclInvalidArgument, "mode 9");
    expect_refused(koloThreadExchangeCaptureMode(&mode), ncclInvalidArgument, "none of the three");
    expect_refused(koloThreadExchangeCaptureMode(NULL), ncclInvalidArgument, "NULL");
    expect_reason(koloStreamEndCapture(s, &graph), koloReasonCaptureState);
    expect_refused(koloStreamEndCapture(s, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloStreamGetCaptureInfo(s, NULL, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloGraphInstantiate(NULL, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloGraphInstantiate(&exec, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloGraphLaunch(NULL, s), ncclInvalidArgument, "NULL");
    expect_refused(koloGraphExecUpdate(NULL, NULL, NULL, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloGraphGetNodeCount(NULL, NULL), ncclInvalidArgument, "NULL");
    expect_refused(koloStreamCaptureKeep(s, NULL, NULL), ncclInvalidArgument, "NULL");
    ok(koloGraphDestroy(NULL));
    ok(koloGraphExecDestroy(NULL));
    ok(koloStreamDestroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_runs_before_the_launch_and_all_at_each),
        cmocka_unit_test(an_empty_graph_does_nothing),
        cmocka_unit_test(launches_of_one_exec_run_one_after_the_other),
        cmocka_unit_test(what_is_kept_goes_when_the_last_launch_has_run),
        cmocka_unit_test(a_graph_that_was_never_made_keeps_nothing),
        cmocka_unit_test(what_is_kept_may_use_the_library_when_it_goes),
        cmocka_unit_test(what_an_update_drops_may_launch_the_graph),
        cmocka_unit_test(what_is_kept_may_take_its_time_to_go),
        cmocka_unit_test(on_a_stream_that_runs_inside_the_call_a_launch_is_done_at_once),
        cmocka_unit_test(an_update_takes_another_graph_of_the_same_shape),
        cmocka_unit_test(what_waits_invalidates_a_capture),
        cmocka_unit_test(a_graph_is_no_part_of_another),
        cmocka_unit_test(a_capture_ends_where_it_began),
        cmocka_unit_test(a_stream_that_goes_takes_its_capture_along),
        cmocka_unit_test(a_thread_that_ends_takes_its_capture_along),
        cmocka_unit_test(a_forked_child_captures_nothing),
        cmocka_unit_test(modes_say_who_may_make_unsafe_calls),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
