/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and captures: those recorded in a capture are marks, by which streams join it and come back; external ones are nodes of
 * the graph, which its launches wait for and record.
 */
#include "tests/stream_check.h"

enum { LAUNCHES = 100 };

/* ---- streams that join by marks ---- */

struct fork_join {
    koloStream_t a, b;
    koloEvent_t forked, joined;
    int from, left, right, sum[2];
};

/* left = from on one stream, right = from on the other, then both to sum. */
static koloGraphExec_t capture_fork_join(struct fork_join *f)
{
    *f = (struct fork_join){.a = make_stream(KOLO_STREAM_DEFAULT),
                            .b = make_stream(KOLO_STREAM_DEFAULT),
                            .forked = make_event(KOLO_EVENT_DEFAULT),
                            .joined = make_event(KOLO_EVENT_DEFAULT)};
    ok(koloStreamBeginCapture(f->a, koloCaptureModeGlobal));
    ok(koloStreamLaunch(f->a, increment, &f->from));
    ok(koloEventRecord(f->forked, f->a));
    ok(koloStreamWaitEvent(f->b, f->forked, 0));
    ok(koloMemcpyAsync(&f->left, &f->from, sizeof f->left, f->a));
    ok(koloMemcpyAsync(&f->right, &f->from, sizeof f->right, f->b));
    ok(koloEventRecord(f->joined, f->b));
    ok(koloStreamWaitEvent(f->a, f->joined, 0));
    ok(koloMemcpyAsync(&f->sum[0], &f->left, sizeof f->left, f->a));
    ok(koloMemcpyAsync(&f->sum[1], &f->right, sizeof f->left, f->a));
    return end(f->a);
}

static void free_fork_join(struct fork_join *f)
{
    ok(koloStreamDestroy(f->a));
    ok(koloStreamDestroy(f->b));
    ok(koloEventDestroy(f->forked));
    ok(koloEventDestroy(f->joined));
}

static void streams_fork_and_join_by_events(void **state)
{
    struct fork_join f;
    koloGraphExec_t exec = capture_fork_join(&f);
    koloCaptureStatus_t status;
    uint64_t id;

    (void)state;
    ok(koloStreamGetCaptureInfo(f.b, &status, &id));
    assert_true(status == koloCaptureStatusNone && id == 0);
    free_fork_join(&f); /* the graph needs none of them */
    for (int i = 1; i <= LAUNCHES; i++) {
        ok(koloGraphLaunch(exec, NULL));
        ok(koloStreamSynchronize(NULL));
        assert_true(f.sum[0] == i && f.sum[1] == i);
    }
    ok(koloGraphExecDestroy(exec));
}

/* c waits for b, and a for c: that is enough. Each sees the writes of the one before. */
static void work_is_joined_by_way_of_others(void **state)
{
    koloStream_t a = begin(koloCaptureModeGlobal), b = make_stream(KOLO_STREAM_DEFAULT),
                 c = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    int from = 0, by_b = 0, by_c = 0, by_a = 0;
    flag go;

    (void)state;
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloStreamLaunch(b, await_flag, &go));
    ok(koloMemcpyAsync(&by_b, &from, sizeof from, b));
    ok(koloEventRecord(e, b));
    ok(koloStreamWaitEvent(c, e, 0));
    ok(koloMemcpyAsync(&by_c, &by_b, sizeof from, c));
    ok(koloEventRecord(e, c));
    ok(koloStreamWaitEvent(a, e, 0));
    ok(koloMemcpyAsync(&by_a, &by_c, sizeof from, a));
    koloGraphExec_t exec = end(a);
    for (int i = 1; i <= LAUNCHES; i++) {
        go = 0;
        from = i;
        ok(koloGraphLaunch(exec, a));
        assert_int_equal(koloStreamQuery(a), ncclInProgress);
        raise_flag(&go);
        ok(koloStreamSynchronize(a));
        assert_int_equal(by_a, i);
    }
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
    ok(koloStreamDestroy(c));
    ok(koloEventDestroy(e));
}

/* Functions on two lanes that wait for each other: lanes run side by side. */
static void captured_streams_run_side_by_side(void **state)
{
    koloStream_t a = begin(koloCaptureModeGlobal), b = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    flag here, there;

    (void)state;
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloStreamLaunch(a, raise_flag, &here));
    ok(koloStreamLaunch(a, await_flag, &there));
    ok(koloStreamLaunch(b, await_flag, &here));
    ok(koloStreamLaunch(b, raise_flag, &there));
    ok(koloEventRecord(e, b));
    ok(koloStreamWaitEvent(a, e, 0));
    koloGraphExec_t exec = end(a);
    for (int i = 0; i < 20; i++) {
        here = there = 0;
        ok(koloGraphLaunch(exec, a));
        ok(koloStreamSynchronize(a));
    }
    ok(koloGraphExecDestroy(exec));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
    ok(koloEventDestroy(e));
}

/* ---- external events ---- */

/* Nodes of events outside: a launch waits for one, and records the other. */
static void launches_wait_for_events_and_record_them(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal), other = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t before = make_event(KOLO_EVENT_DEFAULT), within = make_event(KOLO_EVENT_DEFAULT);
    int64_t ns;
    int n = 0, seen = 0;
    flag go = 0, last = 0;

    (void)state;
    ok(koloStreamWaitEvent(s, before, KOLO_EVENT_EXTERNAL));
    ok(koloStreamLaunch(s, increment, &n));
    ok(koloEventRecordWithFlags(within, s, KOLO_EVENT_EXTERNAL));
    ok(koloStreamLaunch(s, await_flag, &last));
    ok(koloEventQuery(within)); /* not recorded: the capture is fine */
    ok(koloStreamWaitEvent(other, within, 0));
    koloGraphExec_t exec = end(s);

    for (int i = 1; i <= 20; i++) {
        go = last = 0;
        ok(koloStreamLaunch(other, await_flag, &go));
        ok(koloEventRecord(before, other));
        ok(koloGraphLaunch(exec, s));
        assert_int_equal(koloEventQuery(within), ncclInProgress);
        assert_int_equal(n, i - 1);
        ok(koloStreamWaitEvent(other, within, 0));
        ok(koloMemcpyAsync(&seen, &n, sizeof n, other));
        go = 1;
        ok(koloEventSynchronize(within)); /* while the work behind it waits */
        ok(koloStreamSynchronize(other));
        assert_true(n == i && seen == i);
        ok(koloEventElapsedTime(&ns, before, within));
        assert_true(ns >= 0);
        assert_int_equal(koloStreamQuery(s), ncclInProgress);
        last = 1;
        ok(koloStreamSynchronize(s));
    }
    ok(koloGraphExecDestroy(exec));
    ok(koloEventDestroy(before));
    ok(koloEventDestroy(within));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
}

/* Its launches record an event of the graph, not one that was made after the program's was destroyed. */
static void a_graph_keeps_its_events(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    koloEvent_t recorded = make_event(KOLO_EVENT_DEFAULT);
    flag go = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloEventRecordWithFlags(recorded, s, KOLO_EVENT_EXTERNAL));
    koloGraphExec_t exec = end(s);
    ok(koloEventDestroy(recorded));
    koloEvent_t next = make_event(KOLO_EVENT_DEFAULT);
    ok(koloGraphLaunch(exec, s));
    ok(koloEventQuery(next));
    raise_flag(&go);
    ok(koloStreamSynchronize(s));
    ok(koloGraphExecDestroy(exec));
    ok(koloEventDestroy(next));
    ok(koloStreamDestroy(s));
}

/* A launch that would wait for a mark in a capture is refused before anything of it is queued. */
static void a_launch_does_not_wait_for_a_mark(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal), other;
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    koloGraph_t graph;
    int n = 0;

    (void)state;
    ok(koloStreamLaunch(s, increment, &n));
    ok(koloStreamWaitEvent(s, e, KOLO_EVENT_EXTERNAL));
    koloGraphExec_t exec = end(s);
    other = begin(koloCaptureModeGlobal);
    ok(koloEventRecord(e, other));
    expect_reason(koloGraphLaunch(exec, s), koloReasonCapturedEvent);
    ok(koloStreamSynchronize(s));
    assert_int_equal(n, 0);
    expect_reason(koloStreamEndCapture(other, &graph), koloReasonCaptureInvalidated);
    ok(koloEventRecord(e, other));
    ok(koloGraphLaunch(exec, s));
    ok(koloStreamSynchronize(s));
    assert_int_equal(n, 1);
    ok(koloGraphExecDestroy(exec));
    ok(koloEventDestroy(e));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
}

/* ---- refusals ---- */

static void events_of_a_capture_are_marks(void **state)
{
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    koloStream_t s, other = make_stream(KOLO_STREAM_DEFAULT);
    int64_t ns;

    (void)state;
    for (int i = 0; i < 3; i++) {
        ok(koloEventRecord(e, s = begin(koloCaptureModeGlobal)));
        expect_reason(i == 0   ? koloEventQuery(e)
                      : i == 1 ? koloEventSynchronize(e)
                               : koloEventElapsedTime(&ns, e, e),
                      koloReasonCapturedEvent);
        expect_invalidated(s);
    }
    expect_reason(koloStreamWaitEvent(other, e, 0), koloReasonCapturedEvent); /* the capture has ended */
    expect_reason(koloStreamWaitEvent(s = begin(koloCaptureModeGlobal), e, 0), koloReasonCapturedEvent);
    expect_invalidated(s);
    ok(koloEventRecord(e, other)); /* an ordinary one again */
    ok(koloEventSynchronize(e));
    expect_reason(koloStreamWaitEvent(s = begin(koloCaptureModeGlobal), e, 0), koloReasonCaptureIsolation);
    expect_invalidated(s);
    ok(koloEventDestroy(e));
    e = make_event(KOLO_EVENT_DEFAULT);
    ok(koloStreamWaitEvent(s = begin(koloCaptureModeGlobal), e, 0)); /* never recorded */
    ok(koloGraphExecDestroy(end(s)));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
    ok(koloEventDestroy(e));
}

static void two_captures_stay_two(void **state)
{
    koloStream_t a = begin(koloCaptureModeGlobal), b = begin(koloCaptureModeGlobal);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);

    (void)state;
    ok(koloEventRecord(e, a));
    expect_reason(koloStreamWaitEvent(b, e, 0), koloReasonCaptureMerge);
    expect_invalidated(a);
    expect_invalidated(b);
    ok(koloEventDestroy(e));
}

static void all_work_is_joined_at_the_end(void **state)
{
    koloStream_t a = begin(koloCaptureModeGlobal), b = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    koloGraph_t graph;
    int n = 0;

    (void)state;
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloStreamLaunch(b, increment, &n));
    ok(koloEventRecord(e, b));
    ok(koloStreamLaunch(b, increment, &n)); /* behind the awaited event */
    ok(koloStreamWaitEvent(a, e, 0));
    expect_reason(koloStreamEndCapture(a, &graph), koloReasonCaptureUnjoined);
    assert_null(graph);
    ok(koloStreamLaunch(b, increment, &n)); /* captures no more */
    ok(koloStreamSynchronize(b));
    assert_int_equal(n, 1);

    ok(koloStreamBeginCapture(a, koloCaptureModeGlobal));
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0)); /* without work there is nothing to join */
    ok(koloGraphExecDestroy(end(a)));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
    ok(koloEventDestroy(e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_fork_and_join_by_events),   cmocka_unit_test(work_is_joined_by_way_of_others),
        cmocka_unit_test(captured_streams_run_side_by_side), cmocka_unit_test(launches_wait_for_events_and_record_them),
        cmocka_unit_test(a_graph_keeps_its_events),          cmocka_unit_test(a_launch_does_not_wait_for_a_mark),
        cmocka_unit_test(events_of_a_capture_are_marks),     cmocka_unit_test(two_captures_stay_two),
        cmocka_unit_test(all_work_is_joined_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
