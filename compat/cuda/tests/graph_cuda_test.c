/* SPDX-License-Identifier: Apache-2.0 */
/** graph_cuda_test.c - captures, what they forbid, and graphs, with collectives and by hand. */
#include "cuda_test.h"
#include "nccl.h"

#include <pthread.h>
#include <stdatomic.h>
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

static void spin_until(void *arg)
{
    while (!atomic_load((atomic_int *)arg)) continue;
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
    OK(cudaLaunchHostFunc(s, spin_until, &last));
    OK(cudaStreamWaitEvent(other, within, 0));
    expect_status(other, cudaStreamCaptureStatusNone);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 4);
    cudaGraphExec_t exec = instantiate_and_drop(graph);

    OK(cudaLaunchHostFunc(other, spin_until, &go));
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

/* A graph by hand whose child keeps an object, and whose only function waits for `go`. */
static cudaGraphExec_t keeping(struct freeing *gate, int *destroyed)
{
    const struct cudaHostNodeParams wait = {.fn = until_go, .userData = gate};
    cudaGraph_t graph, inner;
    cudaGraphNode_t first, child;
    cudaUserObject_t object[2];

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&inner, 0));
    for (int i = 0; i < 2; i++) {
        OK(cudaUserObjectCreate(&object[i], destroyed, add_one, 1, cudaUserObjectNoDestructorSync));
        OK(cudaGraphRetainUserObject(i ? inner : graph, object[i], 1, cudaGraphUserObjectMove));
    }
    OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &wait));
    OK(cudaGraphAddChildGraphNode(&child, graph, &first, 1, inner));
    OK(cudaGraphDestroy(inner));
    return instantiate_and_drop(graph);
}

static void objects_outlive_what_was_launched(void **state)
{
    int destroyed = 0;
    struct freeing gate = {0};
    cudaGraphExec_t exec = keeping(&gate, &destroyed);

    (void)state;
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphExecDestroy(exec));
    assert_int_equal(destroyed, 0);
    atomic_store(&gate.go, 1);
    OK(cudaStreamSynchronize(s));
    assert_int_equal(destroyed, 2);
}

static void objects_outlive_what_was_launched_of_a_capture(void **state)
{
    int destroyed = 0;
    struct freeing gate = {0};
    cudaGraph_t graph;
    cudaUserObject_t object;

    (void)state;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaLaunchHostFunc(s, until_go, &gate));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaUserObjectCreate(&object, &destroyed, add_one, 1, cudaUserObjectNoDestructorSync));
    OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove)); /* after the end */
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphExecDestroy(exec));
    assert_int_equal(destroyed, 0);
    atomic_store(&gate.go, 1);
    OK(cudaStreamSynchronize(s));
    assert_int_equal(destroyed, 1);
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

static size_t count_of(cudaError_t (*ask)(cudaGraph_t, cudaGraphNode_t *, size_t *), cudaGraph_t graph)
{
    size_t n = 99;

    OK(ask(graph, NULL, &n));
    return n;
}

static void edges_are_told_and_changed(void **state)
{
    cudaGraph_t graph;
    cudaGraphNode_t a, b, c, from[4], to[4], list[4];
    cudaGraphEdgeData data[4];
    size_t n = 4;

    (void)state;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
    OK(cudaGraphAddEmptyNode(&b, graph, &a, 1));
    OK(cudaGraphAddEmptyNode(&c, graph, NULL, 0));
    assert_int_equal(count_of(cudaGraphGetNodes, graph), 3);
    assert_int_equal(count_of(cudaGraphGetRootNodes, graph), 2);
    OK(cudaGraphAddDependencies(graph, &b, &c, NULL, 1));
    FAILS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &b, &c, NULL, 1)); /* twice */
    FAILS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &b, &b, NULL, 1));
    OK(cudaGraphGetEdges(graph, from, to, data, &n));
    assert_int_equal(n, 2);
    assert_ptr_equal(from[0], a);
    assert_ptr_equal(to[0], b);
    assert_ptr_equal(from[1], b);
    assert_ptr_equal(to[1], c);
    assert_null(from[2]);
    n = 4;
    OK(cudaGraphNodeGetDependencies(c, list, NULL, &n));
    assert_int_equal(n, 1);
    assert_ptr_equal(list[0], b);
    n = 1;
    OK(cudaGraphNodeGetDependentNodes(a, list, NULL, &n));
    assert_ptr_equal(list[0], b);
    OK(cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    FAILS(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    assert_int_equal(count_of(cudaGraphGetRootNodes, graph), 2);
    OK(cudaGraphAddDependencies(graph, &c, &a, NULL, 1)); /* before one that was made earlier */
    OK(cudaGraphAddDependencies(graph, &a, &b, NULL, 1));
    cudaGraphExec_t exec;
    FAILS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0)); /* a circle */
    OK(cudaGraphDestroyNode(b));
    FAILS(cudaErrorInvalidValue, cudaGraphDestroyNode(b));
    assert_int_equal(count_of(cudaGraphGetNodes, graph), 2);
    assert_int_equal(count_of(cudaGraphGetRootNodes, graph), 1);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

/* A copy from `from`, a fill behind it, and a function behind that. */
struct chain {
    cudaGraph_t graph;
    cudaGraphNode_t copy, fill, call;
};

static struct chain make_chain(char *to, const char *from, int *times)
{
    struct chain c;
    const struct cudaMemsetParams fill = {.dst = to, .value = 'x', .elementSize = 1, .width = 2, .height = 1};
    const struct cudaHostNodeParams call = {.fn = add_one, .userData = times};

    OK(cudaGraphCreate(&c.graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&c.copy, c.graph, NULL, 0, to, from, 8, cudaMemcpyDefault));
    OK(cudaGraphAddMemsetNode(&c.fill, c.graph, &c.copy, 1, &fill));
    OK(cudaGraphAddHostNode(&c.call, c.graph, &c.fill, 1, &call));
    return c;
}

static void launch(cudaGraphExec_t exec)
{
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
}

static void nodes_say_what_they_do_and_change_it(void **state)
{
    int times = 0, others = 0;
    char to[9] = "", from[] = "abcdefgh", more[] = "ABCDEFGH";
    struct chain c = make_chain(to, from, &times);
    struct cudaMemcpy3DParms copy;
    struct cudaMemsetParams fill;
    struct cudaHostNodeParams call;
    cudaGraphExec_t exec;
    unsigned enabled;

    (void)state;
    OK(cudaGraphMemcpyNodeGetParams(c.copy, &copy));
    assert_ptr_equal(copy.srcPtr.ptr, from);
    assert_int_equal(copy.extent.width, 8);
    OK(cudaGraphMemsetNodeGetParams(c.fill, &fill));
    assert_int_equal(fill.value, 'x');
    OK(cudaGraphHostNodeGetParams(c.call, &call));
    assert_ptr_equal(call.userData, &times);
    FAILS(cudaErrorInvalidValue, cudaGraphMemsetNodeGetParams(c.copy, &fill));
    OK(cudaGraphInstantiate(&exec, c.graph, 0));
    launch(exec);
    assert_string_equal(to, "xxcdefgh");

    copy.srcPtr.ptr = more;
    OK(cudaGraphExecMemcpyNodeSetParams(exec, c.copy, &copy));
    fill.width = 1;
    OK(cudaGraphExecMemsetNodeSetParams(exec, c.fill, &fill));
    call.userData = &others;
    OK(cudaGraphExecHostNodeSetParams(exec, c.call, &call));
    FAILS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(exec, c.copy, &call));
    launch(exec);
    assert_string_equal(to, "xBCDEFGH");
    assert_int_equal(times, 1);
    assert_int_equal(others, 1);
    OK(cudaGraphExecMemcpyNodeSetParams1D(exec, c.copy, to, from, 4, cudaMemcpyDefault));
    OK(cudaGraphNodeSetEnabled(exec, c.fill, 0));
    OK(cudaGraphNodeGetEnabled(exec, c.fill, &enabled));
    assert_int_equal(enabled, 0);
    FAILS(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(exec, c.call, 0)); /* functions may not be left out */
    launch(exec);
    assert_string_equal(to, "abcdEFGH");
    OK(cudaGraphExecDestroy(exec));

    OK(cudaGraphMemcpyNodeSetParams(c.copy, &copy)); /* in the graph: for what is made of it from here on */
    fill.value = 'y';
    OK(cudaGraphMemsetNodeSetParams(c.fill, &fill));
    OK(cudaGraphHostNodeSetParams(c.call, &call));
    exec = instantiate_and_drop(c.graph);
    launch(exec);
    assert_string_equal(to, "yBCDEFGH");
    assert_int_equal(others, 3);
    assert_int_equal(times, 1);
    FAILS(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams1D(c.copy, to, from, 4, cudaMemcpyDefault)); /* gone */
    OK(cudaGraphExecDestroy(exec));
}

static void nodes_of_any_kind_are_made_by_one_function(void **state)
{
    int times = 0;
    cudaGraph_t graph, inner, child;
    cudaGraphNode_t call, nested, in_child;
    struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeHost, .host = {.fn = add_one, .userData = &times}};
    size_t n = 1;

    (void)state;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&inner, 0));
    OK(cudaGraphAddNode(&call, inner, NULL, NULL, 0, &p));
    OK(cudaGraphAddNode(&call, graph, NULL, NULL, 0, &p));
    p = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeGraph, .graph = {.graph = inner}};
    OK(cudaGraphAddNode(&nested, graph, &call, NULL, 1, &p));
    p.type = (enum cudaGraphNodeType)12; /* operations on memory, which only the driver has */
    FAILS(cudaErrorNotSupported, cudaGraphAddNode(&nested, graph, NULL, NULL, 0, &p));
    OK(cudaGraphChildGraphNodeGetGraph(nested, &child));
    FAILS(cudaErrorInvalidValue, cudaGraphDestroy(child)); /* the node's */
    OK(cudaGraphGetNodes(child, &in_child, &n));
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    launch(exec);
    assert_int_equal(times, 2);
    int others = 0;
    p = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeHost, .host = {.fn = add_one, .userData = &others}};
    OK(cudaGraphExecNodeSetParams(exec, in_child, &p));
    launch(exec);
    assert_int_equal(times, 3);
    assert_int_equal(others, 1);
    OK(cudaGraphExecChildGraphNodeSetParams(exec, nested, inner));
    OK(cudaGraphNodeSetParams(call, &p));
    launch(exec);
    assert_int_equal(times, 5);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(inner));
    OK(cudaGraphDestroy(graph));
}

static void a_graph_may_be_moved_into_a_node(void **state)
{
    int times = 0;
    cudaGraph_t outer, inner, found, nested;
    cudaGraphNode_t node, call;
    cudaGraphExec_t exec;
    const struct cudaHostNodeParams add = {.fn = add_one, .userData = &times};
    struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeGraph,
                                    .graph = {.ownership = cudaGraphChildGraphOwnershipMove}};

    (void)state;
    OK(cudaGraphCreate(&outer, 0));
    OK(cudaGraphCreate(&inner, 0));
    OK(cudaGraphAddHostNode(&call, inner, NULL, 0, &add));
    OK(cudaGraphAddChildGraphNode(&node, inner, &call, 1, outer));
    OK(cudaGraphChildGraphNodeGetGraph(node, &nested));
    p.graph.graph = inner;
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&node, nested, NULL, NULL, 0, &p)); /* into itself */
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&node, outer, &call, NULL, 1, &p)); /* and not moved then */
    OK(cudaGraphAddNode(&node, outer, NULL, NULL, 0, &p));
    OK(cudaGraphChildGraphNodeGetGraph(node, &found));
    assert_ptr_equal(found, inner);
    OK(cudaGraphInstantiate(&exec, outer, 0));
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&node, outer, NULL, NULL, 0, &p));
    FAILS(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
    FAILS(cudaErrorInvalidValue, cudaGraphDestroy(inner));
    FAILS(cudaErrorInvalidValue, cudaGraphExecUpdate(exec, inner, NULL));
    FAILS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(exec, node, &p));
    p.graph.ownership = (enum cudaGraphChildGraphNodeOwnership)7;
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&node, outer, NULL, NULL, 0, &p));
    launch(exec);
    assert_int_equal(times, 1);
    OK(cudaGraphExecDestroy(exec));
    FAILS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, inner, 0));
    OK(cudaGraphDestroy(outer));
    FAILS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, inner, NULL, 0)); /* gone along */
}

/* Adds one, records, waits for `gate`, and adds one again. */
static cudaGraph_t recording(cudaEvent_t event, struct freeing *gate, int *count, cudaGraphNode_t *record)
{
    const struct cudaHostNodeParams add = {.fn = add_one, .userData = count}, wait = {.fn = until_go, .userData = gate};
    cudaGraph_t graph;
    cudaGraphNode_t last;

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddHostNode(&last, graph, NULL, 0, &add));
    OK(cudaGraphAddEventRecordNode(record, graph, &last, 1, event));
    OK(cudaGraphAddHostNode(&last, graph, record, 1, &wait));
    OK(cudaGraphAddHostNode(&last, graph, &last, 1, &add));
    return graph;
}

static void events_are_recorded_by_nodes(void **state)
{
    int count = 0;
    struct freeing gate = {0};
    cudaEvent_t e, second, found;
    cudaGraphNode_t node;
    enum cudaGraphNodeType type;

    (void)state;
    OK(cudaEventCreate(&e));
    OK(cudaEventCreate(&second));
    cudaGraph_t graph = recording(e, &gate, &count, &node);
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphNodeGetType(node, &type));
    assert_int_equal(type, cudaGraphNodeTypeEventRecord);
    OK(cudaGraphEventRecordNodeGetEvent(node, &found));
    assert_ptr_equal(found, e);
    FAILS(cudaErrorInvalidValue, cudaGraphEventWaitNodeGetEvent(node, &found));
    FAILS(cudaErrorInvalidResourceHandle, cudaGraphEventRecordNodeSetEvent(node, (cudaEvent_t)&node));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaEventSynchronize(e)); /* in the middle */
    assert_int_equal(count, 1);
    FAILS(cudaErrorNotReady, cudaStreamQuery(s));
    OK(cudaGraphExecEventRecordNodeSetEvent(exec, node, second));
    OK(cudaGraphLaunch(exec, other)); /* behind the first, though its stream has nothing to wait for */
    FAILS(cudaErrorNotReady, cudaEventQuery(second));
    atomic_store(&gate.go, 1);
    OK(cudaStreamSynchronize(other));
    OK(cudaEventQuery(second));
    assert_int_equal(count, 4);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    FAILS(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(exec, s));
    cudaGraph_t none;
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &none));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaEventDestroy(e));
    OK(cudaEventDestroy(second));
    cudaGetLastError();
}

static void nodes_wait_for_events(void **state)
{
    int count = 0;
    struct freeing gate = {0};
    const struct cudaHostNodeParams add = {.fn = add_one, .userData = &count};
    struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeWaitEvent};
    cudaGraph_t graph, inner;
    cudaGraphNode_t wait, node;

    (void)state;
    OK(cudaEventCreate(&p.eventWait.event));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&inner, 0));
    OK(cudaGraphAddNode(&wait, inner, NULL, NULL, 0, &p));
    OK(cudaGraphAddHostNode(&node, inner, &wait, 1, &add));
    OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, inner));
    OK(cudaGraphDestroy(inner));
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    OK(cudaLaunchHostFunc(other, until_go, &gate));
    OK(cudaEventRecord(p.eventWait.event, other));
    OK(cudaGraphLaunch(exec, s));
    FAILS(cudaErrorNotReady, cudaStreamQuery(s));
    assert_int_equal(count, 0);
    atomic_store(&gate.go, 1);
    OK(cudaStreamSynchronize(s));
    assert_int_equal(count, 1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(p.eventWait.event));
    cudaGetLastError();
}

static void nodes_allocate_and_free(void **state)
{
    const struct cudaMemAccessDesc peer = {.location = {.type = cudaMemLocationTypeDevice, .id = 1},
                                           .flags = cudaMemAccessFlagsProtReadWrite};
    struct cudaMemAllocNodeParams p = {.poolProps = {.allocType = cudaMemAllocationTypePinned,
                                                     .location = {.type = cudaMemLocationTypeDevice}},
                                       .accessDescs = &peer,
                                       .accessDescCount = 1,
                                       .bytesize = 1000},
                                  said;
    struct cudaGraphNodeParams any = {.type = cudaGraphNodeTypeMemFree};
    struct freeing gate = {0};
    const struct cudaHostNodeParams wait = {.fn = until_go, .userData = &gate};
    size_t before, after, total;
    cudaGraph_t graph;
    cudaGraphNode_t alloc, last;
    char back[4] = "";
    void *freed = NULL;

    (void)state;
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &p));
    OK(cudaGraphMemAllocNodeGetParams(alloc, &said));
    assert_ptr_equal(said.dptr, p.dptr);
    assert_int_equal(said.accessDescs[0].location.id, 1);
    const struct cudaMemsetParams fill = {.dst = p.dptr, .value = 'm', .elementSize = 1, .width = 1000, .height = 1};
    OK(cudaGraphAddMemsetNode(&last, graph, &alloc, 1, &fill));
    OK(cudaGraphAddHostNode(&last, graph, &last, 1, &wait));
    OK(cudaGraphAddMemcpyNode1D(&last, graph, &last, 1, back, (char *)p.dptr + 997, 3, cudaMemcpyDeviceToHost));
    any.free.dptr = p.dptr;
    OK(cudaGraphAddNode(&last, graph, &last, NULL, 1, &any));
    OK(cudaGraphMemFreeNodeGetParams(last, &freed));
    assert_ptr_equal(freed, p.dptr);
    FAILS(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&last, graph, &last, 1, p.dptr)); /* twice */
    FAILS(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&last, graph, &last, 1, back));
    FAILS(cudaErrorInvalidValue, cudaGraphMemAllocNodeGetParams(last, &said));
    p.bytesize = 0;
    FAILS(cudaErrorInvalidValue, cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &p));
    cudaGraphExec_t exec = instantiate_and_drop(graph);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaMemGetInfo(&after, &total));
    assert_true(after < before); /* it runs */
    atomic_store(&gate.go, 1);
    OK(cudaStreamSynchronize(s));
    assert_string_equal(back, "mmm");
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    FAILS(cudaErrorInvalidValue, cudaFree(freed)); /* gone with the graph */
    cudaGetLastError();
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
    OK(cudaGraphInstantiate(&exec, graph, 0)); /* before anybody has asked for nodes */
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

static void updates_by_hand_need_the_same_edges(void **state)
{
    int times = 0;
    char to[8], from[8] = "1234567", another[8] = "abcdefg";
    struct chain c = make_chain(to, from, &times), second = make_chain(to, another, &times);
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t exec;

    (void)state;
    OK(cudaGraphInstantiate(&exec, c.graph, 0));
    OK(cudaGraphNodeSetEnabled(exec, c.fill, 0));
    OK(cudaGraphExecUpdate(exec, second.graph, &info));
    launch(exec);
    assert_string_equal(to, another); /* what was disabled still is */
    OK(cudaGraphNodeSetEnabled(exec, c.fill, 1));
    launch(exec);
    assert_string_equal(to, "xxcdefg");
    assert_int_equal(times, 2);
    OK(cudaGraphDestroy(c.graph));
    OK(cudaGraphRemoveDependencies(second.graph, &second.fill, &second.call, NULL, 1));
    FAILS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, second.graph, &info));
    assert_int_equal(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    assert_ptr_equal(info.errorNode, second.call);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(second.graph));
}

/* Each edge is there once: a node that goes takes its own along. */
static void edges_are_given_once(void **state)
{
    int times = 0;
    char to[8], from[8] = "1234567";
    struct chain c = make_chain(to, from, &times);
    const struct cudaHostNodeParams call = {.fn = add_one, .userData = &times};
    const cudaGraphNode_t twice[] = {c.copy, c.copy}, behind[] = {c.call, c.call};
    cudaGraphNode_t node;

    (void)state;
    FAILS(cudaErrorInvalidValue, cudaGraphAddHostNode(&node, c.graph, twice, 2, &call));
    FAILS(cudaErrorInvalidValue, cudaGraphAddDependencies(c.graph, twice, behind, NULL, 2));
    OK(cudaGraphAddDependencies(c.graph, twice, behind, NULL, 1));
    OK(cudaGraphDestroyNode(c.copy));
    cudaGraphExec_t exec = instantiate_and_drop(c.graph);
    launch(exec);
    assert_int_equal(times, 1);
    OK(cudaGraphExecDestroy(exec));
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

struct turn {
    int *now, seen;
};

static void take_turn(void *arg)
{
    struct turn *t = arg;

    t->seen = (*t->now)++;
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
        OK(cudaGraphLaunch(exec, s));
        OK(cudaStreamSynchronize(s));
        for (int k = 0; k < 4; k++) assert_int_equal(turns[k].seen, 4 * i + k);
    }
    OK(cudaGraphExecDestroy(exec));

    OK(cudaGraphCreate(&graph, 0));
    FAILS(cudaErrorInvalidValue, cudaStreamBeginCaptureToGraph(s, graph, &first, NULL, 1, cudaStreamCaptureModeGlobal));
    OK(cudaStreamBeginCaptureToGraph(s, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    OK(cudaGraphDestroy(graph)); /* too early */
    FAILS(cudaErrorInvalidValue, cudaStreamEndCapture(s, &graph));
    assert_null(graph);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    FAILS(cudaErrorInvalidValue, cudaStreamEndCapture(s, NULL));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphDestroy(graph));
}

/* Nodes that wait for later ones, far away; and a circle of them. */
static void nodes_wait_for_later_ones(void **state)
{
    enum { NODES = 3000 };
    static struct turn turns[NODES];
    static cudaGraphNode_t node[NODES];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int now = 0;

    (void)state;
    OK(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < NODES; i++) {
        struct cudaHostNodeParams call = {.fn = take_turn, .userData = &turns[i]};

        turns[i] = (struct turn){.now = &now};
        OK(cudaGraphAddHostNode(&node[i], graph, NULL, 0, &call));
    }
    for (int i = 0; i + 1 < NODES / 2; i++) OK(cudaGraphAddDependencies(graph, &node[i + 1], &node[i], NULL, 1));
    OK(cudaGraphAddDependencies(graph, &node[NODES / 2], &node[NODES - 1], NULL, 1)); /* forwards, too */
    OK(cudaGraphAddDependencies(graph, &node[0], &node[NODES - 1], NULL, 1));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(now, NODES);
    for (int i = 0; i + 1 < NODES / 2; i++) assert_true(turns[i].seen > turns[i + 1].seen);
    for (int i = NODES / 2; i + 1 < NODES; i++) assert_true(turns[i].seen < turns[i + 1].seen); /* as they were made */
    assert_true(turns[NODES - 1].seen > turns[0].seen);
    OK(cudaGraphExecDestroy(exec));

    OK(cudaGraphAddDependencies(graph, &node[0], &node[NODES / 2 - 1], NULL, 1));
    FAILS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphRemoveDependencies(graph, &node[0], &node[NODES / 2 - 1], NULL, 1));
    OK(cudaGraphInstantiate(&exec, graph, 0)); /* what the refusal left behind is none of its business */
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_capture_runs_when_it_is_launched, setup, teardown),
        cmocka_unit_test_setup_teardown(events_outside_are_nodes_of_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_wait_for_later_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_are_nodes_of_other_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(streams_fork_and_join, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_refuse_to_be_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(captures_begin_and_end_where_they_should, setup, teardown),
        cmocka_unit_test_setup_teardown(the_legacy_stream_may_not_wait_for_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(a_free_waits_for_the_legacy_stream_whoever_captures, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_relaxed_capture_ends_in_another_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_in_stream_order_is_the_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(executables_are_updated_with_the_same_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_live_as_long_as_their_graphs, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_outlive_what_was_launched, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_outlive_what_was_launched_of_a_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_made_by_hand_run_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(edges_are_told_and_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_say_what_they_do_and_change_it, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_of_any_kind_are_made_by_one_function, setup, teardown),
        cmocka_unit_test_setup_teardown(a_graph_may_be_moved_into_a_node, setup, teardown),
        cmocka_unit_test_setup_teardown(events_are_recorded_by_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_wait_for_events, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_allocate_and_free, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_captured_can_be_cloned_and_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(of_what_was_captured_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_by_hand_need_the_same_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(edges_are_given_once, setup, teardown),
        cmocka_unit_test(collectives_are_replayed),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
