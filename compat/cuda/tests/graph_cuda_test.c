/* SPDX-License-Identifier: Apache-2.0 */
/** graph_cuda_test.c - captures, what they forbid, and graphs, with collectives and by hand. */
#include "cuda_test.h"
#include "nccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static cudaStream_t s, other;

static int setup(void **state)
{
    (void)state;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(other));
    cudaGetLastError();
    return 0;
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void expect_status(cudaStream_t stream, enum cudaStreamCaptureStatus wanted)
{
    enum cudaStreamCaptureStatus status;

    OK(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, wanted);
}

static cudaGraphExec_t instantiate_and_drop(cudaGraph_t graph)
{
    cudaGraphExec_t exec;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

/* ---- captures ---- */

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
        OK(cudaGraphLaunch(exec, s));
        OK(cudaStreamSynchronize(s));
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
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
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

/* Begin, do what is refused with `code`, and find the capture void. */
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
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    OK(end_in_another_thread());
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
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(pinned[9], 9);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaDeviceSynchronize());
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    OK(cudaFreeHost(pinned));
}

/* ---- updates, objects ---- */

static cudaGraph_t capture_adds(int *count, int times)
{
    cudaGraph_t graph;

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < times; i++) OK(cudaLaunchHostFunc(s, add_one, count));
    OK(cudaStreamEndCapture(s, &graph));
    return graph;
}

static void executables_are_updated_with_the_same_shape(void **state)
{
    int a = 0, b = 0;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t exec = instantiate_and_drop(capture_adds(&a, 2));
    cudaGraph_t same = capture_adds(&b, 2), larger = capture_adds(&b, 3);

    (void)state;
    OK(cudaGraphExecUpdate(exec, same, &info));
    assert_int_equal(info.result, cudaGraphExecUpdateSuccess);
    FAILS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, larger, &info));
    assert_int_equal(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(a, 0);
    assert_int_equal(b, 2);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(same));
    OK(cudaGraphDestroy(larger));
}

static void objects_live_as_long_as_their_graphs(void **state)
{
    int destroyed = 0;
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph, under_way;
    cudaUserObject_t object;

    (void)state;
    OK(cudaUserObjectCreate(&object, &destroyed, add_one, 1, cudaUserObjectNoDestructorSync));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaStreamGetCaptureInfo(s, &status, &id, &under_way, NULL, NULL, NULL));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    OK(cudaGraphRetainUserObject(under_way, object, 1, cudaGraphUserObjectMove));
    OK(cudaStreamEndCapture(s, &graph));
    assert_ptr_equal(graph, under_way);
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(destroyed, 0);
    OK(cudaGraphExecDestroy(exec));
    assert_int_equal(destroyed, 1);

    OK(cudaUserObjectCreate(&object, &destroyed, add_one, 1, cudaUserObjectNoDestructorSync));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphRetainUserObject(graph, object, 1, 0));
    OK(cudaUserObjectRelease(object, 1));
    assert_int_equal(destroyed, 1);
    OK(cudaGraphDestroy(graph));
    assert_int_equal(destroyed, 2);
    FAILS(cudaErrorInvalidValue, cudaUserObjectRelease(object, 1));
}

/* ---- graphs by hand ---- */

static void copy_to(void *arg)
{
    int *two = arg;

    two[1] = two[0];
}

static void nodes_made_by_hand_run_in_order(void **state)
{
    int value[2] = {0, -1}, times = 0;
    char *device, host[8] = "abcdefg", back[8] = {0};
    const char path[] = "/tmp/kolo_graph_cuda_test.dot";
    cudaGraph_t graph, outer, clone;
    cudaGraphNode_t first, second, copy, fill, child;
    const struct cudaHostNodeParams add = {.fn = add_one, .userData = &value[0]},
                                    take = {.fn = copy_to, .userData = value},
                                    more = {.fn = add_one, .userData = &times};
    enum cudaGraphNodeType type;

    (void)state;
    OK(cudaMalloc((void **)&device, 8));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &add));
    OK(cudaGraphAddHostNode(&second, graph, &first, 1, &take));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, device, host, 8, cudaMemcpyHostToDevice));
    const struct cudaMemsetParams p = {.dst = device, .value = 'x', .elementSize = 1, .width = 2, .height = 1};
    OK(cudaGraphAddMemsetNode(&fill, graph, &copy, 1, &p));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, back, device, 8, cudaMemcpyDeviceToHost));
    OK(cudaGraphNodeGetType(fill, &type));
    assert_int_equal(type, cudaGraphNodeTypeMemset);
    FAILS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&copy, graph, (cudaGraphNode_t *)&graph, 1));
    OK(cudaGraphCreate(&outer, 0));
    OK(cudaGraphAddHostNode(&first, outer, NULL, 0, &more));
    OK(cudaGraphAddChildGraphNode(&child, outer, &first, 1, graph));
    OK(cudaGraphClone(&clone, outer));
    OK(cudaGraphDebugDotPrint(outer, path, 0));
    unlink(path);
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(outer));
    cudaGraphExec_t exec = instantiate_and_drop(clone);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(times, 2);
    assert_int_equal(value[1], 2);
    assert_string_equal(back, "xxcdefg");
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFree(device));
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
        cmocka_unit_test_setup_teardown(captures_refuse_to_be_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_begin_and_end_where_they_should, setup, teardown),
        cmocka_unit_test_setup_teardown(the_legacy_stream_may_not_wait_for_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_relaxed_capture_ends_in_another_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_in_stream_order_is_the_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(executables_are_updated_with_the_same_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_live_as_long_as_their_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_made_by_hand_run_in_order, setup, teardown),
        cmocka_unit_test(collectives_are_replayed),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
