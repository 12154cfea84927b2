/* SPDX-License-Identifier: Apache-2.0 */
/** graph_cuda_test.c - graphs: updates, the objects that they keep, and nodes that were made by hand. */
#include "graph_test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- updates, objects ---- */

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
    launch(exec);
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
    launch(exec);
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

/* A graph by hand: its child keeps an object, and its only function waits for `go`. */
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
    launch(exec);
    assert_int_equal(times, 2);
    assert_int_equal(value[1], 2);
    assert_string_equal(back, "xxcdefg");
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFree(device));
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

    OK(cudaGraphMemcpyNodeSetParams(c.copy, &copy)); /* in the graph: for executables that are made from here on */
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
    assert_string_equal(to, another); /* a disabled node stays disabled */
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
    launch(exec);
    assert_int_equal(now, NODES);
    for (int i = 0; i + 1 < NODES / 2; i++) assert_true(turns[i].seen > turns[i + 1].seen);
    for (int i = NODES / 2; i + 1 < NODES; i++) assert_true(turns[i].seen < turns[i + 1].seen); /* as they were made */
    assert_true(turns[NODES - 1].seen > turns[0].seen);
    OK(cudaGraphExecDestroy(exec));

    OK(cudaGraphAddDependencies(graph, &node[0], &node[NODES / 2 - 1], NULL, 1));
    FAILS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphRemoveDependencies(graph, &node[0], &node[NODES / 2 - 1], NULL, 1));
    OK(cudaGraphInstantiate(&exec, graph, 0)); /* the earlier refusal has no effect */
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_wait_for_later_ones, setup, teardown),
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
        cmocka_unit_test_setup_teardown(updates_by_hand_need_the_same_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(edges_are_given_once, setup, teardown),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
