/* SPDX-License-Identifier: Apache-2.0 */
/** capture_cuda_test.c - captures: their graphs, forbidden calls, and collectives in them. */
#include "graph_test.h"
#include "nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static void expect_status(cudaStream_t stream, enum cudaStreamCaptureStatus wanted)
{
    enum cudaStreamCaptureStatus status;

    OK(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, wanted);
}

/* ---- captured work ---- */

static void a_capture_runs_when_it_is_launched(void **state)
{
    int count = 0;
    char *device, *pinned;
    size_t nodes = 0;
    cudaGraph_t graph;

    (void)state;
    OK(cudaMalloc((void **)&device, 100));
    OK(cudaMallocHost((void **)&pinned, 100));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    expect_status(s, cudaStreamCaptureStatusActive);
    OK(cudaLaunchHostFunc(s, add_one, &count));
    OK(cudaMemcpyAsync(device, pinned, 100, cudaMemcpyHostToDevice, s));
    OK(cudaMemsetAsync(device, 5, 10, s));
    OK(cudaMemcpyAsync(pinned, device, 100, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamEndCapture(s, &graph));
    expect_status(s, cudaStreamCaptureStatusNone);
    assert_int_equal(count, 0);
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_in_range(nodes, 4, 8);
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    for (int i = 1; i <= 3; i++) {
        memset(pinned, i, 100);
        launch(exec);
        assert_int_equal(count, i);
        assert_int_equal(pinned[9], 5);
        assert_int_equal(pinned[10], i);
    }
    OK(cudaGraphExecDestroy(exec));
    FAILS(cudaErrorInvalidValue, cudaGraphExecDestroy(exec));
    FAILS(cudaErrorInvalidValue, cudaGraphLaunch(exec, s));
    FAILS(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    OK(cudaFree(device));
    OK(cudaFreeHost(pinned));
}

static void streams_fork_and_join(void **state)
{
    int a = 0, b = 0;
    cudaEvent_t fork, join;
    cudaGraph_t graph;

    (void)state;
    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(other, fork, 0));
    expect_status(other, cudaStreamCaptureStatusActive);
    OK(cudaLaunchHostFunc(s, add_one, &a));
    OK(cudaLaunchHostFunc(other, add_one, &b));
    OK(cudaEventRecord(join, other));
    OK(cudaStreamWaitEvent(s, join, 0));
    OK(cudaStreamEndCapture(s, &graph));
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    OK(cudaGraphLaunch(exec, s));
    launch(exec);
    assert_int_equal(a, 2);
    assert_int_equal(b, 2);
    OK(cudaGraphExecDestroy(exec));

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); /* and without the join */
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(other, fork, 0));
    OK(cudaLaunchHostFunc(other, add_one, &b));
    FAILS(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s, &graph));
    assert_null(graph);
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
}

static void memory_in_stream_order_is_the_graphs(void **state)
{
    char *p, *pinned;
    cudaGraph_t graph;
    size_t before, after, total;

    (void)state;
    OK(cudaMallocHost((void **)&pinned, 10));
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync((void **)&p, 1 << 20, s));
    OK(cudaMemsetAsync(p, 9, 10, s));
    OK(cudaMemcpyAsync(pinned, p, 10, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamEndCapture(s, &graph));
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    launch(exec);
    assert_int_equal(pinned[9], 9);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaDeviceSynchronize());
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    OK(cudaFreeHost(pinned));
}

/* A capture becomes a node of a graph that is there, and a captured graph a child: each as one. */
static void captures_are_nodes_of_other_graphs(void **state)
{
    cudaGraph_t graph, captured, told;
    cudaGraphNode_t first, inner, child, last;
    cudaGraphExec_t exec;
    enum cudaGraphNodeType type;
    enum cudaStreamCaptureStatus status;
    size_t n = 8;
    cudaGraphNode_t all[8];
    int now = 0;
    struct turn turns[4] = {{.now = &now}, {.now = &now}, {.now = &now}, {.now = &now}};
    struct cudaHostNodeParams call = {.fn = take_turn, .userData = &turns[0]};

    (void)state;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &call));
    OK(cudaStreamBeginCaptureToGraph(s, graph, &first, NULL, 1, cudaStreamCaptureModeGlobal));
    OK(cudaStreamGetCaptureInfo(s, &status, NULL, &told, NULL, NULL, NULL));
    assert_ptr_equal(told, graph);
    OK(cudaLaunchHostFunc(s, take_turn, &turns[1]));
    OK(cudaStreamEndCapture(s, NULL));
    OK(cudaGraphGetNodes(graph, all, &n));
    assert_int_equal(n, 2);
    inner = all[1];
    OK(cudaGraphNodeGetType(inner, &type));
    assert_int_equal(type, cudaGraphNodeTypeGraph);

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaLaunchHostFunc(s, take_turn, &turns[2]));
    OK(cudaStreamEndCapture(s, &captured));
    OK(cudaGraphAddChildGraphNode(&child, graph, &inner, 1, captured));
    OK(cudaGraphDestroy(captured));
    call.userData = &turns[3];
    OK(cudaGraphAddHostNode(&last, graph, &child, 1, &call));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphExecUpdate(exec, graph, NULL));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++) {
        launch(exec);
        for (int k = 0; k < 4; k++) assert_int_equal(turns[k].seen, 4 * i + k);
    }
    OK(cudaGraphExecDestroy(exec));
}

static void a_capture_ends_in_a_graph_that_is_there(void **state)
{
    const struct cudaHostNodeParams call = {.fn = add_one, .userData = &(int){0}};
    cudaGraph_t graph, another;
    cudaGraphNode_t foreign;

    (void)state;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&another, 0));
    OK(cudaGraphAddHostNode(&foreign, another, NULL, 0, &call));
    FAILS(cudaErrorInvalidValue,
          cudaStreamBeginCaptureToGraph(s, graph, &foreign, NULL, 1, cudaStreamCaptureModeGlobal));
    OK(cudaStreamBeginCaptureToGraph(s, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    OK(cudaGraphDestroy(graph)); /* too early */
    FAILS(cudaErrorInvalidValue, cudaStreamEndCapture(s, &graph));
    assert_null(graph);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    FAILS(cudaErrorInvalidValue, cudaStreamEndCapture(s, NULL));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(another));
}

static void what_was_captured_can_be_cloned_and_counted(void **state)
{
    int count = 0;
    cudaGraph_t graph = capture_adds(&count, 3), clone;
    cudaGraphNode_t node[3], same;
    size_t n = 3;
    const struct cudaHostNodeParams call = {.fn = add_one, .userData = &count};

    (void)state;
    OK(cudaGraphGetNodes(graph, node, &n));
    assert_int_equal(n, 3);
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphNodeFindInClone(&same, node[1], clone));
    assert_int_equal(count_of(cudaGraphGetNodes, clone), 3);
    FAILS(cudaErrorNotSupported, cudaGraphGetRootNodes(clone, NULL, &n));
    OK(cudaGraphDestroy(graph));
    FAILS(cudaErrorNotSupported, cudaGraphAddHostNode(&same, clone, NULL, 0, &call));
    cudaGraphExec_t exec = instantiate_and_drop(clone);
    launch(exec);
    assert_int_equal(count, 3);
    OK(cudaGraphExecDestroy(exec));
}

static void of_what_was_captured_nothing_is_told(void **state)
{
    int count = 0;
    size_t n = 1;
    unsigned enabled;
    enum cudaGraphNodeType type;
    struct cudaHostNodeParams call = {.fn = add_one, .userData = &count};
    cudaGraph_t graph = capture_adds(&count, 1), second;
    cudaGraphNode_t node, foreign;
    cudaGraphExec_t exec;

    (void)state;
    OK(cudaGraphCreate(&second, 0));
    OK(cudaGraphAddHostNode(&foreign, second, NULL, 0, &call));
    OK(cudaGraphInstantiate(&exec, graph, 0)); /* before any query for nodes */
    OK(cudaGraphGetNodes(graph, &node, &n));
    FAILS(cudaErrorNotSupported, cudaGraphExecHostNodeSetParams(exec, node, &call));
    FAILS(cudaErrorNotSupported, cudaGraphNodeSetEnabled(exec, node, 0));
    FAILS(cudaErrorNotSupported, cudaGraphNodeGetEnabled(exec, node, &enabled));
    FAILS(cudaErrorNotSupported, cudaGraphHostNodeGetParams(node, &call));
    FAILS(cudaErrorNotSupported, cudaGraphHostNodeSetParams(node, &call));
    FAILS(cudaErrorNotSupported, cudaGraphNodeGetType(node, &type));
    FAILS(cudaErrorNotSupported, cudaGraphDestroyNode(node));
    FAILS(cudaErrorNotSupported, cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    FAILS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(exec, foreign, &call)); /* of another graph */
    launch(exec);
    assert_int_equal(count, 1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(second));
    cudaGetLastError();
}

/* External events are nodes: of a capture's own fork and join they are no part. */
static void events_outside_are_nodes_of_a_capture(void **state)
{
    cudaEvent_t before, within, shared;
    cudaGraph_t graph;
    int count = 0;
    size_t nodes = 0;
    atomic_int go = 0, last = 0;

    (void)state;
    OK(cudaEventCreate(&before));
    OK(cudaEventCreate(&within));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaStreamWaitEvent(s, before, cudaEventWaitExternal));
    OK(cudaLaunchHostFunc(s, add_one, &count));
    OK(cudaEventRecordWithFlags(within, s, cudaEventRecordExternal));
    OK(cudaLaunchHostFunc(s, wait_for_flag, &last));
    OK(cudaStreamWaitEvent(other, within, 0));
    expect_status(other, cudaStreamCaptureStatusNone);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 4);
    cudaGraphExec_t exec = instantiate_and_drop(graph);

    OK(cudaLaunchHostFunc(other, wait_for_flag, &go));
    OK(cudaEventRecord(before, other));
    OK(cudaGraphLaunch(exec, s));
    FAILS(cudaErrorNotReady, cudaEventQuery(within));
    assert_int_equal(count, 0);
    atomic_store(&go, 1);
    OK(cudaEventSynchronize(within));
    assert_int_equal(count, 1);
    FAILS(cudaErrorNotReady, cudaStreamQuery(s));
    atomic_store(&last, 1);
    OK(cudaStreamSynchronize(s));
    OK(cudaEventRecordWithFlags(within, s, cudaEventRecordExternal)); /* the same as without, outside of captures */
    OK(cudaEventSynchronize(within));
    FAILS(cudaErrorInvalidValue, cudaEventRecordWithFlags(within, s, 2));
    FAILS(cudaErrorInvalidValue, cudaStreamWaitEvent(s, within, 2));

    OK(cudaEventCreateWithFlags(&shared, cudaEventInterprocess | cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    FAILS(cudaErrorStreamCaptureUnsupported, cudaEventRecordWithFlags(shared, s, cudaEventRecordExternal));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(shared));
    OK(cudaEventDestroy(before));
    OK(cudaEventDestroy(within));
}

/* ---- refused calls ---- */

/* Begin, make a call that is refused with `code`, and find the capture void. */
#define REFUSED_IN_CAPTURE(code, call)                                                                                 \
    do {                                                                                                               \
        cudaGraph_t refused_graph;                                                                                     \
                                                                                                                       \
        OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));                                                    \
        FAILS(code, call);                                                                                             \
        expect_status(s, cudaStreamCaptureStatusInvalidated);                                                          \
        FAILS(cudaErrorStreamCaptureInvalidated, cudaLaunchHostFunc(s, add_one, &(int){0}));                           \
        FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &refused_graph));                             \
        assert_null(refused_graph);                                                                                    \
        expect_status(s, cudaStreamCaptureStatusNone);                                                                 \
    } while (0)

static void captures_refuse_to_be_waited_for(void **state)
{
    void *p;
    char *device, host[10];
    cudaEvent_t e, outside;

    (void)state;
    OK(cudaMalloc((void **)&device, 10));
    OK(cudaEventCreate(&e));
    OK(cudaEventCreate(&outside));
    OK(cudaEventRecord(outside, other));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(s));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 10));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaFree(device));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureUnsupported, cudaMemcpy(host, device, 10, cudaMemcpyDeviceToHost));
    REFUSED_IN_CAPTURE(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(s, outside, 0));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    OK(cudaMalloc(&p, 10));
    OK(cudaEventRecord(e, s));
    FAILS(cudaErrorCapturedEvent, cudaEventSynchronize(e));
    cudaGraph_t graph;
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
    OK(cudaFree(p));
    OK(cudaFree(device));
    OK(cudaEventDestroy(e));
    OK(cudaEventDestroy(outside));
}

static void captures_begin_and_end_where_they_should(void **state)
{
    cudaGraph_t graph = (cudaGraph_t)&graph;
    cudaEvent_t e;

    (void)state;
    FAILS(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    FAILS(cudaErrorInvalidValue, cudaStreamBeginCapture(s, (enum cudaStreamCaptureMode)3));
    FAILS(cudaErrorIllegalState, cudaStreamEndCapture(s, &graph));
    assert_null(graph);
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(e, s));
    OK(cudaStreamWaitEvent(other, e, 0));
    FAILS(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(other, &graph));
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
    OK(cudaEventDestroy(e));
}

static void the_legacy_stream_may_not_wait_for_a_capture(void **state)
{
    cudaStream_t blocking;
    cudaGraph_t graph;

    (void)state;
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    FAILS(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(&graph, 0, 1, NULL));
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));
    OK(cudaStreamDestroy(blocking));
}

static void a_free_waits_for_the_legacy_stream_whoever_captures(void **state)
{
    struct freeing f = {0};
    cudaGraph_t graph;

    (void)state;
    OK(cudaMalloc(&f.ptr, 100));
    OK(cudaLaunchHostFunc(NULL, until_go, &f));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    expect_free_to_wait(&f);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
}

static void *end_it(void *arg)
{
    cudaGraph_t graph;
    cudaError_t rc = cudaStreamEndCapture(*(cudaStream_t *)arg, &graph);

    if (!rc) cudaGraphDestroy(graph);
    return (void *)(uintptr_t)rc;
}

static cudaError_t end_in_another_thread(void)
{
    pthread_t thread;
    void *rc;

    pthread_create(&thread, NULL, end_it, &s);
    pthread_join(thread, &rc);
    return (cudaError_t)(uintptr_t)rc;
}

static void only_a_relaxed_capture_ends_in_another_thread(void **state)
{
    cudaGraph_t graph;

    (void)state;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    assert_int_equal(end_in_another_thread(), cudaErrorStreamCaptureWrongThread);
    expect_status(s, cudaStreamCaptureStatusInvalidated);
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
    assert_null(graph);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    OK(end_in_another_thread());
}

/* ---- collectives ---- */

enum { RANKS = 4, COUNT = 1000, REPLAYS = 100 };

struct rank {
    int rank;
    ncclUniqueId id;
    float *data, *own;
    int wrong;
};

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if (call) {                                                                                                    \
            r->wrong = __LINE__;                                                                                       \
            return NULL;                                                                                               \
        }                                                                                                              \
    } while (0)

static void *replay(void *arg)
{
    struct rank *r = arg;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ncclComm_t comm;

    MUST(cudaSetDevice(r->rank));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(ncclCommInitRank(&comm, RANKS, r->id, r->rank));
    MUST(cudaMallocHost((void **)&r->data, COUNT * sizeof(float)));
    MUST(cudaMallocHost((void **)&r->own, COUNT * sizeof(float)));
    for (int i = 0; i < COUNT; i++) r->data[i] = 1;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(r->data, r->data, COUNT, ncclFloat, ncclMax, comm, stream));
    MUST(cudaLaunchHostFunc(stream, add_one, &r->wrong));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    for (int i = 0; i < REPLAYS; i++) {
        for (int k = 0; k < COUNT; k++) {
            r->data[k] = (float)(r->rank + i);
            r->own[k] = 1;
        }
        MUST(cudaGraphLaunch(exec, stream));
        if (i % 10 == 0) MUST(ncclAllReduce(r->own, r->own, COUNT, ncclFloat, ncclSum, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(r->data[COUNT - 1] != (float)(RANKS - 1 + i));
        MUST(i % 10 == 0 && r->own[0] != RANKS);
    }
    MUST(r->wrong != REPLAYS);
    MUST(cudaGraphExecDestroy(exec));
    MUST(ncclCommDestroy(comm));
    MUST(cudaFreeHost(r->data));
    MUST(cudaFreeHost(r->own));
    MUST(cudaStreamDestroy(stream));
    r->wrong = 0;
    return NULL;
}

static void collectives_are_replayed(void **state)
{
    struct rank rank[RANKS];
    pthread_t thread[RANKS];
    ncclUniqueId id;

    (void)state;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < RANKS; i++) {
        rank[i] = (struct rank){.rank = i, .id = id};
        pthread_create(&thread[i], NULL, replay, &rank[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(thread[i], NULL);
        if (rank[i].wrong) fail_msg("rank %d: wrong in line %d", i, rank[i].wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_capture_runs_when_it_is_launched, setup, teardown),
        cmocka_unit_test_setup_teardown(streams_fork_and_join, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_in_stream_order_is_the_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_are_nodes_of_other_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_capture_ends_in_a_graph_that_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_captured_can_be_cloned_and_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(of_what_was_captured_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(events_outside_are_nodes_of_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_refuse_to_be_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_begin_and_end_where_they_should, setup, teardown),
        cmocka_unit_test_setup_teardown(the_legacy_stream_may_not_wait_for_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(a_free_waits_for_the_legacy_stream_whoever_captures, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_relaxed_capture_ends_in_another_thread, setup, teardown),
        cmocka_unit_test(collectives_are_replayed),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
