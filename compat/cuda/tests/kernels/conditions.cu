// SPDX-License-Identifier: Apache-2.0
// Graphs with conditions: if, else, as long as, and one of many; within each other, launched again, cloned, and by the driver's functions.
#include <cuda.h>

#include "check.h"

#define CU(call) EXPECT((call) == CUDA_SUCCESS)

// Sets the condition, and counts its evaluations.
__global__ void set(cudaGraphConditionalHandle handle, const unsigned *value, int *asked)
{
    cudaGraphSetConditional(handle, *value);
    ++*asked;
}

// Once more as long as there is something left.
__global__ void count_down(cudaGraphConditionalHandle handle, int *left, int *rounds)
{
    ++*rounds;
    cudaGraphSetConditional(handle, --*left > 0);
}

__global__ void add(int *to, int value)
{
    atomicAdd(to, value);
}

// The data of all tests.
struct world {
    cudaStream_t stream;
    unsigned *value;
    int *asked, *left, *rounds, *sum;
};

static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t after, void *function, void **arguments, int threads = 1)
{
    cudaKernelNodeParams p = {};
    cudaGraphNode_t node;

    p.func = function;
    p.gridDim = dim3(1);
    p.blockDim = dim3(threads);
    p.kernelParams = arguments;
    CUDA(cudaGraphAddKernelNode(&node, graph, after ? &after : nullptr, after ? 1 : 0, &p));
    return node;
}

static cudaGraphNode_t condition(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                                 cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *bodies)
{
    cudaGraphNodeParams p = {};
    cudaGraphNode_t node;

    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle;
    p.conditional.type = type;
    p.conditional.size = size;
    CUDA(cudaGraphAddNode(&node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &p));
    for (unsigned i = 0; i < size; i++) bodies[i] = p.conditional.phGraph_out[i];
    return node;
}

static void add_to(cudaGraph_t graph, int *sum, int value)
{
    void *arguments[] = {&sum, &value};

    kernel(graph, nullptr, (void *)add, arguments);
}

static int launched(const world &w, cudaGraphExec_t exec, unsigned value)
{
    *w.value = value;
    *w.sum = 0;
    CUDA(cudaGraphLaunch(exec, w.stream));
    CUDA(cudaStreamSynchronize(w.stream));
    return *w.sum;
}

// A kernel says which of the graphs runs; `behind` it all runs another one.
static cudaGraphExec_t make_choice(const world &w, cudaGraphConditionalNodeType type, unsigned size)
{
    cudaGraph_t graph, clone, bodies[4];
    cudaGraphConditionalHandle handle;
    cudaGraphExec_t exec;
    int thousand = 1000;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphConditionalHandleCreate(&handle, graph));
    void *asks[] = {&handle, (void *)&w.value, (void *)&w.asked}, *adds[] = {(void *)&w.sum, &thousand};
    cudaGraphNode_t first = kernel(graph, nullptr, (void *)set, asks);
    cudaGraphNode_t choice = condition(graph, first, handle, type, size, bodies);
    for (unsigned i = 0; i < size; i++) add_to(bodies[i], w.sum, 1 << i);
    kernel(graph, choice, (void *)add, adds);
    CUDA(cudaGraphClone(&clone, graph));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphInstantiate(&exec, clone, 0));
    CUDA(cudaGraphDestroy(clone));
    return exec;
}

static void one_is_chosen(const world &w)
{
    cudaGraphExec_t exec = make_choice(w, cudaGraphCondTypeIf, 1);
    EXPECT(launched(w, exec, 1) == 1001 && launched(w, exec, 0) == 1000 && launched(w, exec, 7) == 1001);
    CUDA(cudaGraphExecDestroy(exec));

    exec = make_choice(w, cudaGraphCondTypeIf, 2);
    EXPECT(launched(w, exec, 1) == 1001 && launched(w, exec, 0) == 1002);
    CUDA(cudaGraphExecDestroy(exec));

    exec = make_choice(w, cudaGraphCondTypeSwitch, 4);
    for (unsigned i = 0; i < 4; i++) EXPECT(launched(w, exec, i) == 1000 + (1 << i));
    EXPECT(launched(w, exec, 4) == 1000);
    CUDA(cudaGraphExecDestroy(exec));
}

// A loop, with another one in it, that each launch begins anew.
static void loops_end(const world &w)
{
    cudaGraph_t graph, outer, inner;
    cudaGraphConditionalHandle rounds, steps;
    cudaGraphExec_t exec;
    int *left = w.left, *more = w.left + 1, five = 5;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphConditionalHandleCreate(&rounds, graph, 1, cudaGraphCondAssignDefault));
    CUDA(cudaGraphConditionalHandleCreate(&steps, graph, 1, 0));
    condition(graph, nullptr, rounds, cudaGraphCondTypeWhile, 1, &outer);

    cudaGraphNodeParams copy = {};
    copy.type = cudaGraphNodeTypeMemcpy;
    copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(w.value, 4, 4, 1);
    copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(more, 4, 4, 1);
    copy.memcpy.copyParams.extent = make_cudaExtent(4, 1, 1);
    copy.memcpy.copyParams.kind = cudaMemcpyDefault;
    cudaGraphNode_t again;
    CUDA(cudaGraphAddNode(&again, outer, nullptr, nullptr, 0, &copy));
    void *open[] = {&steps, (void *)&w.value, (void *)&w.asked}, *step[] = {&steps, &more, (void *)&w.sum},
         *round[] = {&rounds, &left, (void *)&w.rounds}, *adds[] = {(void *)&w.sum, &five};
    again = kernel(outer, again, (void *)set, open);
    again = condition(outer, again, steps, cudaGraphCondTypeWhile, 1, &inner);
    kernel(inner, nullptr, (void *)count_down, step);
    again = kernel(outer, again, (void *)add, adds, 2);
    kernel(outer, again, (void *)count_down, round);
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    for (int i = 1; i < 4; i++) {
        *w.left = 3;
        *w.rounds = 0;
        EXPECT(launched(w, exec, 4) == 3 * (4 + 2 * 5));
        EXPECT(*w.rounds == 3 && *w.left == 0);
    }
    CUDA(cudaGraphExecDestroy(exec));
}

// A loop around a captured graph, twice, around a node made by hand.
static void bodies_are_captured(const world &w)
{
    cudaGraph_t graph, loop;
    cudaGraphConditionalHandle more;
    cudaGraphExec_t exec;
    cudaGraphNode_t all[4];
    size_t n = 4;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault));
    condition(graph, nullptr, more, cudaGraphCondTypeWhile, 1, &loop);
    CUDA(cudaStreamBeginCaptureToGraph(w.stream, loop, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    add<<<1, 4, 0, w.stream>>>(w.sum, 1);
    CUDA(cudaStreamEndCapture(w.stream, nullptr));
    CUDA(cudaGraphGetNodes(loop, all, &n));
    EXPECT(n == 1);
    int thousand = 1000;
    void *arguments[] = {(void *)&w.sum, &thousand};
    cudaGraphNode_t last = kernel(loop, all[0], (void *)add, arguments);
    CUDA(cudaStreamBeginCaptureToGraph(w.stream, loop, &last, nullptr, 1, cudaStreamCaptureModeGlobal));
    count_down<<<1, 1, 0, w.stream>>>(more, w.left, w.rounds);
    CUDA(cudaStreamEndCapture(w.stream, nullptr));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++) {
        *w.left = 5;
        *w.rounds = 0;
        EXPECT(launched(w, exec, 0) == 5 * 1004 && *w.rounds == 5);
    }
    CUDA(cudaGraphExecDestroy(exec));
}

static void what_cannot_be_is_refused(const world &w)
{
    cudaGraph_t graph, body;
    cudaGraphConditionalHandle handle = 0;
    cudaGraphNodeParams p = {};
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    cudaGraphNodeType type;

    CUDA(cudaGraphCreate(&graph, 0));
    EXPECT(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2) == cudaErrorInvalidValue);
    EXPECT(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0) == cudaErrorInvalidValue);
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.type = cudaGraphCondTypeIf;
    p.conditional.size = 1;
    EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p) == cudaErrorInvalidValue); // no handle
    CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    p.conditional.handle = handle;
    p.conditional.size = 3;
    EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p) == cudaErrorInvalidValue);
    p.conditional.type = cudaGraphCondTypeWhile;
    p.conditional.size = 2;
    EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p) == cudaErrorInvalidValue);
    node = condition(graph, nullptr, handle, cudaGraphCondTypeIf, 1, &body);
    CUDA(cudaGraphNodeGetType(node, &type));
    EXPECT(type == cudaGraphNodeTypeConditional);
    EXPECT(cudaGraphDestroy(body) == cudaErrorInvalidValue); // the node's
    EXPECT(cudaGraphChildGraphNodeGetGraph(node, &body) == cudaErrorInvalidValue);
    CUDA(cudaGraphInstantiate(&exec, graph, 0)); // an empty one is fine
    EXPECT(launched(w, exec, 0) == 0);
    CUDA(cudaGraphExecDestroy(exec));
    cudaHostNodeParams call = {};
    call.fn = [](void *) {};
    CUDA(cudaGraphAddHostNode(&node, body, nullptr, 0, &call));
    EXPECT(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorNotSupported); // no work of a device
    cudaGetLastError();
    CUDA(cudaGraphDestroy(graph));
}

static void the_driver_has_them(const world &w)
{
    CUgraph graph;
    CUgraphConditionalHandle handle;
    CUgraphNodeParams p = {};
    CUgraphNode node;
    CUgraphExec exec;

    CU(cuGraphCreate(&graph, 0));
    CU(cuGraphConditionalHandleCreate(&handle, graph, nullptr, 2, CU_GRAPH_COND_ASSIGN_DEFAULT));
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = handle;
    p.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
    p.conditional.size = 3;
    CU(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
    add_to((cudaGraph_t)p.conditional.phGraph_out[2], w.sum, 5);
    CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT(launched(w, (cudaGraphExec_t)exec, 0) == 5);
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(graph));
}

int main()
{
    CU(cuInit(0));
    return on_all_devices([](int) {
        world w = {nullptr, managed<unsigned>(1), managed<int>(1), managed<int>(2), managed<int>(1), managed<int>(1)};

        CUDA(cudaStreamCreate(&w.stream));
        one_is_chosen(w);
        loops_end(w);
        bodies_are_captured(w);
        what_cannot_be_is_refused(w);
        the_driver_has_them(w);
        CUDA(cudaStreamDestroy(w.stream));
        for (void *p : {(void *)w.value, (void *)w.asked, (void *)w.left, (void *)w.rounds, (void *)w.sum})
            CUDA(cudaFree(p));
    });
}
