/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that has several ranks, each with a capture of its own, as nccl-tests has with -g and -G: groups over all
 * of them, and the calls of such a group that are refused.
 */
#include "tests/graph_ranks.h"

#include <stdbool.h>
#include <stdlib.h>

enum { LAUNCHES = 300, MANY = 1500 };

static struct ranks all;

/* ---- groups over all ranks ---- */

static void reduce_all(int set)
{
    ok(ncclGroupStart());
    for (int r = 0; r < all.n; r++) all_reduce(&all, r, set);
    ok(ncclGroupEnd());
}

/* The reduced data go round; each send stands before its matching receive, in a capture of its own. */
static void send_round(int set)
{
    ok(ncclGroupStart());
    for (int r = 0; r < all.n; r++) {
        int next = (r + 1) % all.n, before = (r + all.n - 1) % all.n;
        ok(ncclSend(all.recv[set][r], COUNT, ncclInt32, next, all.comm[r], all.stream[r]));
        ok(ncclRecv(all.got[set][r], COUNT, ncclInt32, before, all.comm[r], all.stream[r]));
    }
    ok(ncclGroupEnd());
}

static void begin_all(void)
{
    for (int r = 0; r < all.n; r++) ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeThreadLocal));
}

/* Between the groups each rank adds its number: the value shows the ranks that it has passed. */
static void add_rank(void *data)
{
    int32_t *recv = data;

    recv[0] += (int32_t)((recv - all.recv[0][0]) / COUNT % MOST);
}

static void capture_all(int set, koloGraph_t *graph)
{
    begin_all();
    reduce_all(set);
    for (int r = 0; r < all.n; r++) ok(koloStreamLaunch(all.stream[r], add_rank, all.recv[set][r]));
    send_round(set);
    for (int r = 0; r < all.n; r++) ok(koloStreamEndCapture(all.stream[r], &graph[r]));
}

static void launch_all(void)
{
    for (int r = 0; r < all.n; r++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
}

static void expect_round(int set, int seed)
{
    for (int r = 0; r < all.n; r++) {
        int before = (r + all.n - 1) % all.n;
        assert_int_equal(all.got[set][r][0], sum(&all, seed, 0) + before);
        for (int i = 1; i < COUNT; i++) assert_int_equal(all.got[set][r][i], sum(&all, seed, i));
    }
}

static void update_all(int set)
{
    koloGraphUpdateResult_t result;
    koloGraph_t graph[MOST];

    capture_all(set, graph);
    for (int r = 0; r < all.n; r++) {
        ok(koloGraphExecUpdate(all.exec[r], graph[r], &result, NULL));
        ok(koloGraphDestroy(graph[r]));
    }
}

static void launch_often(int n)
{
    koloGraph_t graph[MOST];

    make_ranks(&all, n);
    capture_all(0, graph);
    for (int r = 0; r < n; r++) all.exec[r] = instantiate(graph[r]);
    for (int set = 0; set < 2; set++) {
        if (set) update_all(set);
        for (int i = 1; i <= LAUNCHES; i++) {
            if (i % 10 == 1) fill(&all, i); /* else no rank waits between launches */
            launch_all();
            if (i % 10) continue;
            wait_for_all(&all);
            expect_round(set, i - 9);
            memset(all.got, 0, sizeof all.got);
            if (i % 20) reduce_all(set); /* ordinary groups stand between */
            wait_for_all(&all);
        }
    }
    free_ranks(&all);
}

static void two_ranks(void **state)
{
    (void)state;
    launch_often(2);
}

static void four_ranks(void **state)
{
    (void)state;
    launch_often(4);
}

static void eight_ranks(void **state)
{
    (void)state;
    launch_often(8);
}

/* ---- launches ---- */

/* All launches of one rank, then those of the next: none of them waits for another rank, nor do large groups for small ones before. */
static void a_launch_does_not_wait_for_other_ranks(void **state)
{
    koloGraphExec_t large[2];

    (void)state;
    make_ranks(&all, 2);
    begin_all();
    reduce_all(0);
    for (int r = 0; r < 2; r++) all.exec[r] = end(all.stream[r]);
    begin_all();
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < MANY; i++) {
            ok(ncclSend(&all.recv[0][r][i % COUNT], 1, ncclInt32, !r, all.comm[r], all.stream[r]));
            ok(ncclRecv(&all.got[0][r][i % COUNT], 1, ncclInt32, !r, all.comm[r], all.stream[r]));
        }
    ok(ncclGroupEnd());
    for (int r = 0; r < 2; r++) large[r] = end(all.stream[r]);
    fill(&all, 1);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 100; i++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
        ok(koloGraphLaunch(large[r], all.stream[r]));
    }
    wait_for_all(&all);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < COUNT; i++) assert_int_equal(all.got[0][r][i], sum(&all, 1, i));
        ok(koloGraphExecDestroy(large[r]));
    }
    free_ranks(&all);
}

/* ---- refusals ---- */

/* The captures go on: they hold the earlier and later calls, and no more. */
static void expect_nothing_captured(int captures)
{
    for (int r = 0; r < captures; r++) {
        koloCaptureStatus_t status;
        ok(koloStreamGetCaptureInfo(all.stream[r], &status, NULL));
        assert_int_equal(status, koloCaptureStatusActive);
        all.exec[r] = end(all.stream[r]);
    }
    fill(&all, 1);
    for (int r = 0; r < captures; r++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
    wait_for_all(&all);
    for (int r = 0; r < all.n; r++) assert_int_equal(all.recv[0][r][0], 0);
    reduce_all(0); /* nothing was left behind in the communicators */
    wait_for_all(&all);
    for (int r = 0; r < all.n; r++) assert_int_equal(all.recv[0][r][1], sum(&all, 1, 1));
}

static void expect_mixed(const char *words)
{
    expect_reason(ncclGroupEnd(), koloReasonCaptureMerge);
    if (!strstr(ncclGetLastError(NULL), words)) fail_msg("\"%s\" does not say \"%s\"", ncclGetLastError(NULL), words);
    assert_null(strchr(ncclGetLastError(NULL), '\n'));
}

static void a_group_that_is_captured_in_part_is_refused(void **state)
{
    (void)state;
    make_ranks(&all, 4);
    for (int r = 0; r < 2; r++) ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeThreadLocal));
    ok(ncclGroupStart());
    for (int r = 0; r < 4; r++) all_reduce(&all, r, 0);
    expect_mixed("rank 0 on a stream that captures, and of rank 2 on one that does not");
    expect_nothing_captured(2);
    free_ranks(&all);
}

/* Its second operation is on the stream of another rank, which captures for itself, or not at all. */
static void a_communicator_in_two_captures_is_refused(void **state)
{
    (void)state;
    for (int captures = 1; captures <= 2; captures++) {
        make_ranks(&all, 2);
        for (int r = 0; r < captures; r++) ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeThreadLocal));
        ok(ncclGroupStart());
        for (int r = 0; r < 2; r++) {
            all_reduce(&all, r, 0);
            ok(ncclBroadcast(all.send[r], all.got[0][r], COUNT, ncclInt32, 0, all.comm[r], all.stream[!r]));
        }
        expect_mixed("the communicator of rank 0 has operations of one group on streams of two captures");
        expect_nothing_captured(captures);
        free_ranks(&all);
    }
}

/* No graph is made: each would be incomplete. The streams and communicators are as before. */
static void expect_all_invalidated(void)
{
    koloGraph_t graph;

    for (int r = 0; r < all.n; r++)
        expect_reason(koloStreamEndCapture(all.stream[r], &graph), koloReasonCaptureInvalidated);
    fill(&all, 3);
    reduce_all(0);
    wait_for_all(&all);
    for (int r = 0; r < all.n; r++) assert_int_equal(all.recv[0][r][COUNT - 1], sum(&all, 3, COUNT - 1));
}

static void a_capture_that_was_invalidated_takes_the_group_with_it(void **state)
{
    (void)state;
    make_ranks(&all, 4);
    for (int bad = 0; bad < 4; bad++) {
        begin_all();
        reduce_all(0);
        expect_reason(koloStreamSynchronize(all.stream[bad]), koloReasonCaptureUnsupported);
        ok(ncclGroupStart());
        for (int r = 0; r < 4; r++) all_reduce(&all, r, 0);
        expect_reason(ncclGroupEnd(), koloReasonCaptureInvalidated);
        expect_all_invalidated();
    }
    free_ranks(&all);
}

static void one_communicator_for_no_graphs_takes_the_group_with_it(void **state)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t none;

    (void)state;
    make_ranks(&all, 2);
    config.graphUsageMode = 0;
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclCommSplit(all.comm[r], r ? 0 : NCCL_SPLIT_NOCOLOR, 0, &none, &config));
    ok(ncclGroupEnd());
    begin_all();
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) all_reduce(&all, r, 0);
    ok(ncclAllReduce(all.send[1], all.got[0][1], COUNT, ncclInt32, ncclSum, none, all.stream[1]));
    expect_reason(ncclGroupEnd(), koloReasonCaptureUnsupported);
    expect_all_invalidated();
    ok(ncclCommDestroy(none));
    free_ranks(&all);
}

/* A stream is destroyed, and its capture with it: the others can be ended, and the ranks work on. */
static void a_capture_is_given_up_in_the_middle(void **state)
{
    koloGraph_t graph;

    (void)state;
    make_ranks(&all, 4);
    begin_all();
    reduce_all(0);
    ok(koloStreamDestroy(all.stream[2]));
    all.stream[2] = make_stream(KOLO_STREAM_DEFAULT);
    ok(ncclGroupStart());
    for (int r = 0; r < 4; r++) all_reduce(&all, r, 0);
    expect_mixed("rank 2 on one that does not");
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        ok(koloStreamEndCapture(all.stream[r], &graph));
        ok(koloGraphDestroy(graph));
    }
    fill(&all, 2);
    reduce_all(0);
    wait_for_all(&all);
    for (int r = 0; r < 4; r++) assert_int_equal(all.recv[0][r][1], sum(&all, 2, 1));
    free_ranks(&all);
}

/* All communicators are aborted between a group and the ends: the graphs exist, and no launch of them queues
 * anything. */
static void communicators_are_aborted_in_the_middle(void **state)
{
    (void)state;
    make_ranks(&all, 4);
    begin_all();
    for (int r = 0; r < 4; r++) ok(koloMemsetAsync(all.send[r], 0, sizeof all.send[r], all.stream[r]));
    reduce_all(0);
    for (int r = 0; r < 4; r++) {
        ok(ncclCommAbort(all.comm[r]));
        all.comm[r] = NULL;
    }
    fill(&all, 1);
    for (int r = 0; r < 4; r++) {
        all.exec[r] = end(all.stream[r]);
        expect_refused(koloGraphLaunch(all.exec[r], all.stream[r]), ncclInvalidArgument, "aborted");
        ok(koloStreamSynchronize(all.stream[r]));
        assert_int_equal(all.send[r][0], 1 + r);
    }
    free_ranks(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(four_ranks),
        cmocka_unit_test(eight_ranks),
        cmocka_unit_test(a_launch_does_not_wait_for_other_ranks),
        cmocka_unit_test(a_group_that_is_captured_in_part_is_refused),
        cmocka_unit_test(a_communicator_in_two_captures_is_refused),
        cmocka_unit_test(a_capture_that_was_invalidated_takes_the_group_with_it),
        cmocka_unit_test(one_communicator_for_no_graphs_takes_the_group_with_it),
        cmocka_unit_test(a_capture_is_given_up_in_the_middle),
        cmocka_unit_test(communicators_are_aborted_in_the_middle),
    };

    setenv("KOLO_HOST_DEVICES", "8", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
