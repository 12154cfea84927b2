/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of collectives: each rank with one of its own, or all in one; the references of a graph to its communicators,
 * and calls that cannot be captured.
 */
#include "tests/graph_ranks.h"

#include <stdbool.h>

enum { RANKS = 4, LAUNCHES = 100 };

static void exchange(struct ranks *all, int r)
{
    ok(ncclGroupStart());
    ok(ncclSend(all->recv[0][r], COUNT, ncclInt32, (r + 1) % RANKS, all->comm[r], all->stream[r]));
    ok(ncclRecv(all->got[0][r], COUNT, ncclInt32, (r + RANKS - 1) % RANKS, all->comm[r], all->stream[r]));
    ok(ncclGroupEnd());
}

/* Each rank has a graph of its own. */
static void capture_each(struct ranks *all, void (*calls)(struct ranks *all, int r))
{
    for (int r = 0; r < RANKS; r++) {
        ok(koloStreamBeginCapture(all->stream[r], koloCaptureModeThreadLocal));
        calls(all, r);
        all->exec[r] = end(all->stream[r]);
    }
}

static void reduce_and_send_round(struct ranks *all, int r)
{
    all_reduce(all, r, 0);
    ok(koloStreamLaunch(all->stream[r], increment, all->recv[0][r]));
    exchange(all, r);
}

/* All-reduce, add one, send it round. Ordinary calls stand between the launches. */
static void each_rank_replays_its_collectives(void **state)
{
    static struct ranks all;

    (void)state;
    make_ranks(&all, RANKS);
    capture_each(&all, reduce_and_send_round);
    for (int n = 1; n <= LAUNCHES; n++) {
        fill(&all, n);
        for (int r = 0; r < RANKS; r++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
        wait_for_all(&all);
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < COUNT; i++) assert_int_equal(all.got[0][r][i], sum(&all, n, i) + !i);
        for (int r = 0; r < RANKS && n % 7 == 0; r++) all_reduce(&all, r, 0);
        wait_for_all(&all);
    }
    free_ranks(&all);
}

/* All ranks in one graph: streams joined by events, operations in one group. */
static void capture_all_in_one(struct ranks *all, bool grouped)
{
    koloEvent_t e[RANKS]; /* each is recorded on a stream of its device */

    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        e[r] = make_event(KOLO_EVENT_DEFAULT);
    }
    ok(koloStreamBeginCapture(all->stream[0], koloCaptureModeGlobal));
    ok(koloEventRecord(e[0], all->stream[0]));
    for (int r = 1; r < RANKS; r++) ok(koloStreamWaitEvent(all->stream[r], e[0], 0));
    if (grouped) ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) all_reduce(all, r, 0);
    if (grouped) ok(ncclGroupEnd());
    for (int r = 1; r < RANKS; r++) {
        ok(koloEventRecord(e[r], all->stream[r]));
        ok(koloStreamWaitEvent(all->stream[0], e[r], 0));
    }
    all->exec[0] = end(all->stream[0]);
    for (int r = 0; r < RANKS; r++) ok(koloEventDestroy(e[r]));
}

static void replay_all_in_one(bool grouped)
{
    static struct ranks all;

    make_ranks(&all, RANKS);
    capture_all_in_one(&all, grouped);
    for (int n = 1; n <= 30; n++) {
        fill(&all, n);
        ok(koloGraphLaunch(all.exec[0], all.stream[n % RANKS]));
        ok(koloStreamSynchronize(all.stream[n % RANKS]));
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < COUNT; i++) assert_int_equal(all.recv[0][r][i], sum(&all, n, i));
    }
    free_ranks(&all);
}

static void one_graph_has_all_ranks(void **state)
{
    (void)state;
    replay_all_in_one(true);
}

static void one_graph_has_all_ranks_without_a_group(void **state)
{
    (void)state;
    replay_all_in_one(false);
}

/* A group with operations of one communicator on two streams: it begins when both are there, and both go on after
 * it. */
static void a_group_joins_streams(void **state)
{
    static struct ranks all;
    int32_t copy[RANKS][COUNT];

    (void)state;
    make_ranks(&all, RANKS);
    for (int r = 0; r < RANKS; r++) {
        koloStream_t other = make_stream(KOLO_STREAM_DEFAULT);
        koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
        ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeGlobal));
        ok(koloEventRecord(e, all.stream[r]));
        ok(koloStreamWaitEvent(other, e, 0));
        ok(koloStreamLaunch(other, increment, all.send[r]));
        ok(ncclGroupStart());
        all_reduce(&all, r, 0);
        ok(ncclBroadcast(all.send[r], all.got[0][r], COUNT, ncclInt32, 1, all.comm[r], other));
        ok(ncclGroupEnd());
        ok(koloMemcpyAsync(copy[r], all.recv[0][r], sizeof copy[r], all.stream[r]));
        ok(koloEventRecord(e, other));
        ok(koloStreamWaitEvent(all.stream[r], e, 0));
        all.exec[r] = end(all.stream[r]);
        ok(koloStreamDestroy(other));
        ok(koloEventDestroy(e));
    }
    for (int n = 1; n <= 30; n++) {
        fill(&all, n);
        for (int r = 0; r < RANKS; r++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
        wait_for_all(&all);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(copy[r][0], sum(&all, n, 0) + RANKS);
            assert_int_equal(copy[r][COUNT - 1], sum(&all, n, COUNT - 1));
            assert_int_equal(all.got[0][r][0], n + 2);
        }
    }
    free_ranks(&all);
}

static void a_graph_keeps_the_operator_that_it_was_captured_with(void **state)
{
    static struct ranks all;

    (void)state;
    make_ranks(&all, RANKS);
    for (int32_t r = 0, three = 3; r < RANKS; r++) {
        ncclRedOp_t op, another;
        ok(ncclRedOpCreatePreMulSum(&op, &three, ncclInt32, ncclScalarHostImmediate, all.comm[r]));
        ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeGlobal));
        ok(ncclAllReduce(all.send[r], all.recv[0][r], COUNT, ncclInt32, op, all.comm[r], all.stream[r]));
        all.exec[r] = end(all.stream[r]);
        ok(ncclRedOpDestroy(op, all.comm[r]));
        int32_t seven = 7; /* in the same place */
        ok(ncclRedOpCreatePreMulSum(&another, &seven, ncclInt32, ncclScalarHostImmediate, all.comm[r]));
    }
    fill(&all, 1);
    for (int r = 0; r < RANKS; r++) ok(koloGraphLaunch(all.exec[r], all.stream[r]));
    wait_for_all(&all);
    for (int i = 0; i < COUNT; i++) assert_int_equal(all.recv[0][0][i], 3 * sum(&all, 1, i));
    free_ranks(&all);
}

static void clear_and_reduce(struct ranks *all, int r)
{
    ok(koloMemsetAsync(all->send[r], 0, sizeof all->send[r], all->stream[r]));
    all_reduce(all, r, 0);
}

static void a_graph_outlives_its_communicator(void **state)
{
    static struct ranks all;

    (void)state;
    make_ranks(&all, RANKS);
    capture_each(&all, clear_and_reduce);
    fill(&all, 1);
    for (int r = 0; r < RANKS; r++) {
        ok(ncclCommDestroy(all.comm[r]));
        all.comm[r] = NULL;
    }
    for (int r = 0; r < RANKS; r++) {
        expect_refused(koloGraphLaunch(all.exec[r], all.stream[r]), ncclInvalidArgument, "destroyed");
        ok(koloStreamSynchronize(all.stream[r]));
        assert_int_equal(all.send[r][COUNT - 1], (1 + r) * COUNT); /* nothing was queued */
    }
    free_ranks(&all);
}

/* One of the communicators forbids graphs: nothing of the group is captured. */
static void a_group_with_a_communicator_for_no_graphs_is_refused(void **state)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t graphs, none;
    int32_t a = 1, b = 0;
    koloGraph_t graph;

    (void)state;
    ok(ncclCommInitAll(&graphs, 1, NULL));
    config.graphUsageMode = 0;
    ok(ncclCommSplit(graphs, 0, 0, &none, &config));
    ok(ncclGroupStart());
    ok(ncclAllReduce(&a, &b, 1, ncclInt32, ncclSum, graphs, s));
    ok(ncclAllReduce(&a, &b, 1, ncclInt32, ncclSum, none, s));
    expect_reason(ncclGroupEnd(), koloReasonCaptureUnsupported);
    expect_reason(koloStreamEndCapture(s, &graph), koloReasonCaptureInvalidated);
    for (int empty = 0; empty < 2; empty++) {
        ok(koloStreamBeginCapture(s, koloCaptureModeGlobal));
        expect_reason(ncclAllReduce(&a, &b, !empty, ncclInt32, ncclSum, none, s), koloReasonCaptureUnsupported);
        expect_reason(koloStreamEndCapture(s, &graph), koloReasonCaptureInvalidated);
    }
    ok(ncclAllReduce(&a, &b, 1, ncclInt32, ncclSum, none, s));
    ok(koloStreamDestroy(s));
    assert_int_equal(b, 1);
    ok(ncclCommDestroy(none));
    ok(ncclCommDestroy(graphs));
}

/* A call without elements counts: a rank that launches it twice is as far as ranks that have called it twice. */
static void an_empty_collective_counts_when_it_is_launched(void **state)
{
    static struct ranks all;

    (void)state;
    make_ranks(&all, RANKS);
    for (int r = 0; r < RANKS; r += 2) {
        ok(koloStreamBeginCapture(all.stream[r], koloCaptureModeThreadLocal));
        ok(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, all.comm[r], all.stream[r]));
        all.exec[r] = end(all.stream[r]);
    }
    fill(&all, 1);
    for (int launches = 0; launches < 3; launches += 2) {
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < launches; i++)
                ok(all.exec[r] ? koloGraphLaunch(all.exec[r], all.stream[r])
                               : ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, all.comm[r], all.stream[r]));
        for (int r = 0; r < RANKS; r++) all_reduce(&all, r, 0);
        wait_for_all(&all);
        for (int r = 0; r < RANKS; r++) assert_int_equal(all.recv[0][r][1], sum(&all, 1, 1));
    }
    free_ranks(&all);
}

static koloGraph_t capture_one(ncclComm_t comm, bool broadcast)
{
    koloStream_t s = begin(koloCaptureModeGlobal);
    static int32_t a, b;
    koloGraph_t graph;

    ok(broadcast ? ncclBroadcast(&a, &b, 1, ncclInt32, 0, comm, s)
                 : ncclAllReduce(&a, &b, 1, ncclInt32, ncclSum, comm, s));
    ok(koloStreamEndCapture(s, &graph));
    ok(koloStreamDestroy(s));
    return graph;
}

static void an_update_keeps_function_and_communicator(void **state)
{
    koloGraphUpdateResult_t result;
    koloGraphExec_t exec;
    ncclComm_t comm[2];
    size_t node = 9;

    (void)state;
    for (int i = 0; i < 2; i++) ok(ncclCommInitAll(&comm[i], 1, NULL));
    koloGraph_t same = capture_one(comm[0], false), function = capture_one(comm[0], true),
                other = capture_one(comm[1], false);
    ok(koloGraphInstantiate(&exec, same));
    expect_reason(koloGraphExecUpdate(exec, function, &result, &node), koloReasonGraphUpdate);
    assert_true(result == koloGraphUpdateParametersChanged && node == 0);
    expect_reason(koloGraphExecUpdate(exec, other, &result, NULL), koloReasonGraphUpdate);
    assert_int_equal(result, koloGraphUpdateParametersChanged);
    ok(koloGraphExecUpdate(exec, same, &result, NULL));
    koloGraph_t all[] = {same, function, other};
    for (int i = 0; i < 3; i++) ok(koloGraphDestroy(all[i]));
    ok(koloGraphExecDestroy(exec));
    for (int i = 0; i < 2; i++) ok(ncclCommDestroy(comm[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_replays_its_collectives),
        cmocka_unit_test(one_graph_has_all_ranks),
        cmocka_unit_test(one_graph_has_all_ranks_without_a_group),
        cmocka_unit_test(a_group_joins_streams),
        cmocka_unit_test(a_graph_keeps_the_operator_that_it_was_captured_with),
        cmocka_unit_test(a_graph_outlives_its_communicator),
        cmocka_unit_test(a_group_with_a_communicator_for_no_graphs_is_refused),
        cmocka_unit_test(an_empty_collective_counts_when_it_is_launched),
        cmocka_unit_test(an_update_keeps_function_and_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
