/* SPDX-License-Identifier: Apache-2.0 */
/** driver_graph_cuda_test.c - captures and graphs by the driver's functions, which are the runtime's. */
#include "driver_test.h"

#include <stdlib.h>

static CUstream stream;
static CUgraph graph;

static int setup(void **state)
{
    (void)state;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuGraphCreate(&graph, 0));
    return 0;
}

/* One library destroys objects of the other. */
static int teardown(void **state)
{
    (void)state;
    OK(cudaGraphDestroy((cudaGraph_t)graph));
    OK(cudaStreamDestroy((cudaStream_t)stream));
    return 0;
}

static void launch(CUgraphExec exec)
{
    CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));
}

/* ---- graphs ---- */

static void a_capture_runs_when_it_is_launched(void **state)
{
    int count = 0;
    char back[4] = "";
    CUgraph captured, told;
    CUgraphExec exec;
    CUdeviceptr p;
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;

    (void)state;
    CU(cuMemAlloc(&p, 4));
    CU(cuMemsetD8(p, '.', 4));
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamGetCaptureInfo(stream, &status, &id, &told, NULL, NULL, NULL));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_not_equal(id, 0);
    CU(cuLaunchHostFunc(stream, add_one, &count));
    CU(cuMemsetD8Async(p, 'a', 4, stream));
    CU(cuStreamEndCapture(stream, &captured));
    assert_ptr_equal(captured, told);
    assert_int_equal(count, 0);
    CU(cuGraphInstantiate(&exec, captured, 0));
    CU(cuGraphDestroy(captured));
    launch(exec);
    assert_int_equal(count, 1);
    CU(cuMemcpyDtoH(back, p, 4));
    assert_memory_equal(back, "aaaa", 4);
    CU(cuGraphExecDestroy(exec));
    CU(cuMemFree(p));
}

/* A fill, a function behind it, and a clone of both behind that. */
static void nodes_run_and_are_left_out(void **state)
{
    int count = 0;
    char back[4] = "";
    CUgraph clone;
    CUgraphNode fill, call, child, before[2];
    CUgraphNodeType type;
    CUgraphExec exec;
    CUdeviceptr p;
    size_t n = 2;
    const CUDA_HOST_NODE_PARAMS add = {.fn = add_one, .userData = &count};

    (void)state;
    CU(cuMemAlloc(&p, 4));
    CU(cuMemsetD8(p, 'a', 4));
    CUDA_MEMSET_NODE_PARAMS x = {.dst = p + 1, .value = 'x', .elementSize = 1, .width = 1, .height = 1};
    CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &x, NULL));
    CU(cuGraphAddHostNode(&call, graph, &fill, 1, &add));
    CU(cuGraphClone(&clone, graph));
    CU(cuGraphAddChildGraphNode(&child, graph, &call, 1, clone));
    CU(cuGraphDestroy(clone));
    CU(cuGraphNodeGetDependencies(child, before, NULL, &n));
    assert_int_equal(n, 1);
    assert_ptr_equal(before[0], call);
    CU(cuGraphNodeGetType(before[0], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_HOST);
    CU(cuGraphInstantiate(&exec, graph, 0));
    x.dst = p, x.value = 'y';
    CU(cuGraphExecMemsetNodeSetParams(exec, fill, &x, NULL));
    launch(exec);
    CU(cuMemcpyDtoH(back, p, 4));
    assert_memory_equal(back, "yxaa", 4); /* as it is now, and as the child has it */
    CU(cuMemsetD8(p, 'a', 4));
    CU(cuGraphNodeSetEnabled(exec, fill, 0));
    launch(exec);
    CU(cuMemcpyDtoH(back, p, 4));
    assert_memory_equal(back, "axaa", 4);
    assert_int_equal(count, 4);
    CU(cuGraphExecDestroy(exec));
    CU(cuMemFree(p));
}

static void nodes_allocate_and_free(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        .bytesize = 100};
    CUgraphNode allocates, frees;
    CUgraphExec exec;
    CUdeviceptr freed = 0;

    (void)state;
    CU(cuGraphAddMemAllocNode(&allocates, graph, NULL, 0, &memory));
    CU(cuGraphAddMemFreeNode(&frees, graph, &allocates, 1, memory.dptr));
    CU(cuGraphMemFreeNodeGetParams(frees, &freed));
    assert_int_equal(freed, memory.dptr);
    CU(cuGraphInstantiate(&exec, graph, 0));
    launch(exec);
    CU(cuGraphExecDestroy(exec));
}

static void what_is_refused_is_no_error_of_the_runtime(void **state)
{
    CUgraph gone;
    int none = 0;

    (void)state;
    cudaGetLastError();
    CU(cuGraphCreate(&gone, 0));
    CU(cuGraphDestroy(gone));
    assert_int_equal(cuGraphDestroy(gone), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGraphLaunch((CUgraphExec)&none, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cudaGetLastError());
}

/* ---- nodes that copy boxes: the driver has three ways to say where an end is ---- */

enum { ROW = 8, PITCH = 16, BYTES = 64, RESULT = 32 };

/* Two rows of three bytes go to the device, and its second row comes back, to RESULT. */
struct boxes {
    char *host;
    CUdeviceptr device;
    CUDA_MEMCPY3D in;
    CUgraphNode to, from;
};

static struct boxes add_boxes(void)
{
    struct boxes b;

    OK(cudaMallocHost((void **)&b.host, BYTES));
    memcpy(b.host, "01234567abcdefghABCDEFGH", 3 * ROW);
    CU(cuMemAlloc(&b.device, BYTES));
    CU(cuMemsetD8(b.device, '.', BYTES));
    b.in = (CUDA_MEMCPY3D){.srcXInBytes = 1,
                           .srcY = 1,
                           .srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = b.host,
                           .srcPitch = ROW,
                           .dstXInBytes = 2,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = b.device,
                           .dstPitch = PITCH,
                           .WidthInBytes = 3,
                           .Height = 2,
                           .Depth = 1};
    CUgraphNodeParams out = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                             .memcpy.copyParams = {.srcXInBytes = PITCH,
                                                   .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                                   .srcDevice = b.device,
                                                   .dstMemoryType = CU_MEMORYTYPE_HOST,
                                                   .dstHost = b.host + RESULT,
                                                   .WidthInBytes = 6,
                                                   .Height = 1,
                                                   .Depth = 1}};
    CU(cuGraphAddMemcpyNode(&b.to, graph, NULL, 0, &b.in, NULL));
    CU(cuGraphAddNode(&b.from, graph, &b.to, NULL, 1, &out));
    return b;
}

static void free_boxes(const struct boxes *b)
{
    CU(cuMemFree(b->device));
    OK(cudaFreeHost(b->host));
}

static void nodes_copy_boxes(void **state)
{
    struct boxes b = add_boxes();
    CUgraphExec exec;

    (void)state;
    CU(cuGraphInstantiate(&exec, graph, 0));
    launch(exec);
    assert_memory_equal(b.host + RESULT, "..BCD.", 6);
    b.in.srcXInBytes = 4;
    CU(cuGraphExecMemcpyNodeSetParams(exec, b.to, &b.in, NULL));
    launch(exec);
    assert_memory_equal(b.host + RESULT, "..EFG.", 6);
    CU(cuGraphExecDestroy(exec));
    free_boxes(&b);
}

static void nodes_say_what_they_copy(void **state)
{
    struct boxes b = add_boxes();
    CUDA_MEMCPY3D said;

    (void)state;
    CU(cuGraphMemcpyNodeGetParams(b.to, &said));
    assert_true(said.srcXInBytes == 1 && said.srcY == 1 && said.srcZ == 0);
    assert_true(said.srcMemoryType == CU_MEMORYTYPE_HOST && said.srcHost == b.host && said.srcPitch == ROW);
    assert_true(said.dstMemoryType == CU_MEMORYTYPE_DEVICE && said.dstDevice == b.device && said.dstPitch == PITCH);
    assert_true(said.dstXInBytes == 2 && said.dstY == 0 && said.dstZ == 0);
    assert_true(said.WidthInBytes == 3 && said.Height == 2 && said.Depth == 1);
    b.in.srcXInBytes = 4;
    CU(cuGraphMemcpyNodeSetParams(b.to, &b.in));
    CU(cuGraphMemcpyNodeGetParams(b.to, &said));
    assert_int_equal(said.srcXInBytes, 4);
    free_boxes(&b);
}

static void nodes_copy_no_arrays(void **state)
{
    struct boxes b = add_boxes();

    (void)state;
    b.in.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    assert_int_equal(cuGraphMemcpyNodeSetParams(b.to, &b.in), CUDA_ERROR_NOT_SUPPORTED);
    b.in.srcMemoryType = (CUmemorytype)9;
    assert_int_equal(cuGraphAddMemcpyNode(&b.to, graph, NULL, 0, &b.in, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGraphAddNode(&b.to, graph, NULL, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    free_boxes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_capture_runs_when_it_is_launched, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_run_and_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_allocate_and_free, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_is_no_error_of_the_runtime, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_copy_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_say_what_they_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_copy_no_arrays, setup, teardown),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    if (cudaSetDevice(0)) return 1; /* its context is the current one from here on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
