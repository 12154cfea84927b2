// SPDX-License-Identifier: Apache-2.0
// Graphs of kernels made by hand: query and change of parameters, in the graph and in its executables; variables; clones.
#include "check.h"

__device__ int variable;

__global__ void add(int *to, int value)
{
    atomicAdd(to, value);
}

__global__ void store(int *to, int value)
{
    if (!threadIdx.x) *to = value;
}

static cudaKernelNodeParams launch_of(void *function, int threads, void **arguments)
{
    cudaKernelNodeParams p = {};

    p.func = function;
    p.gridDim = dim3(1);
    p.blockDim = dim3(threads);
    p.kernelParams = arguments;
    return p;
}

static int run(cudaGraphExec_t exec, cudaStream_t stream, const int *result)
{
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    return *result;
}

static void parameters_change(int *total, cudaStream_t stream)
{
    int value = 5, other = 7;
    void *arguments[] = {&total, &value}, *more[] = {&total, &other};
    cudaKernelNodeParams p = launch_of((void *)store, 1, arguments), said;
    cudaGraphNode_t first, second, in_clone;
    cudaGraph_t graph, clone;
    cudaGraphExec_t exec, of_clone;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &p));
    p = launch_of((void *)add, 32, arguments);
    CUDA(cudaGraphAddKernelNode(&second, graph, &first, 1, &p));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(run(exec, stream, total) == 5 + 5 * 32);

    CUDA(cudaGraphKernelNodeGetParams(second, &said));
    EXPECT(said.func == (void *)add && said.blockDim.x == 32 && *(int *)said.kernelParams[1] == 5);
    p = launch_of((void *)add, 2, more);
    CUDA(cudaGraphExecKernelNodeSetParams(exec, second, &p));
    EXPECT(run(exec, stream, total) == 5 + 7 * 2);
    CUDA(cudaGraphKernelNodeGetParams(second, &said)); // the graph is as it was
    EXPECT(said.blockDim.x == 32);
    p.blockDim.x = 5000; // refused, and nothing has changed
    EXPECT(cudaGraphExecKernelNodeSetParams(exec, second, &p) != cudaSuccess);
    cudaGetLastError();
    EXPECT(run(exec, stream, total) == 5 + 7 * 2);
    CUDA(cudaGraphNodeSetEnabled(exec, second, 0));
    EXPECT(run(exec, stream, total) == 5);
    CUDA(cudaGraphNodeSetEnabled(exec, second, 1));
    EXPECT(run(exec, stream, total) == 5 + 7 * 2);

    CUDA(cudaGraphClone(&clone, graph));
    CUDA(cudaGraphNodeFindInClone(&in_clone, second, clone));
    p = launch_of((void *)add, 3, more);
    CUDA(cudaGraphKernelNodeSetParams(in_clone, &p));
    CUDA(cudaGraphInstantiate(&of_clone, clone, 0));
    EXPECT(run(of_clone, stream, total) == 5 + 7 * 3);
    CUDA(cudaGraphExecUpdate(exec, clone, nullptr));
    EXPECT(run(exec, stream, total) == 5 + 7 * 3);
    p = launch_of((void *)add, 1, arguments); // still by the names of the first graph
    CUDA(cudaGraphExecKernelNodeSetParams(exec, second, &p));
    EXPECT(run(exec, stream, total) == 5 + 5);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphExecDestroy(of_clone));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphDestroy(clone));
}

// The node that is written comes first, since CUDA 13.
static void attributes_are_copied(int *total)
{
    int value = 1;
    void *arguments[] = {&total, &value};
    cudaKernelNodeParams p = launch_of((void *)add, 1, arguments);
    cudaLaunchAttributeValue v = {};
    cudaGraphNode_t first, second;
    cudaGraph_t graph;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &p));
    CUDA(cudaGraphAddKernelNode(&second, graph, &first, 1, &p));
    v.priority = -3;
    CUDA(cudaGraphKernelNodeSetAttribute(first, cudaLaunchAttributePriority, &v));
    CUDA(cudaGraphKernelNodeCopyAttributes(second, first));
    v.priority = 0;
    CUDA(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributePriority, &v));
    EXPECT(v.priority == -3);
    CUDA(cudaGraphDestroy(graph));
}

static void variables_are_copied(int *pinned, cudaStream_t stream)
{
    cudaGraphNode_t in, out;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, variable, pinned, sizeof(int), 0,
                                        cudaMemcpyHostToDevice));
    CUDA(cudaGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, pinned + 1, variable, sizeof(int), 0,
                                          cudaMemcpyDeviceToHost));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    pinned[0] = 11;
    pinned[2] = 12;
    EXPECT(run(exec, stream, pinned + 1) == 11);
    CUDA(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, in, variable, pinned + 2, sizeof(int), 0,
                                                  cudaMemcpyHostToDevice));
    EXPECT(run(exec, stream, pinned + 1) == 12);
    CUDA(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, out, pinned + 3, variable, sizeof(int), 0,
                                                    cudaMemcpyDeviceToHost));
    EXPECT(run(exec, stream, pinned + 3) == 12);
    EXPECT(cudaGraphMemcpyNodeSetParamsToSymbol(in, variable, pinned, 2 * sizeof(int), 0, cudaMemcpyHostToDevice) ==
           cudaErrorInvalidValue);
    CUDA(cudaGraphMemcpyNodeSetParamsToSymbol(in, variable, pinned, sizeof(int), 0, cudaMemcpyHostToDevice));
    CUDA(cudaGraphMemcpyNodeSetParamsFromSymbol(out, pinned + 3, variable, sizeof(int), 0, cudaMemcpyDeviceToHost));
    cudaGetLastError();
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(run(exec, stream, pinned + 3) == 11);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

int main()
{
    return on_all_devices([](int) {
        int *total = managed<int>(1), *pinned = nullptr;
        cudaStream_t stream;

        CUDA(cudaStreamCreate(&stream));
        CUDA(cudaMallocHost((void **)&pinned, 4 * sizeof(int)));
        parameters_change(total, stream);
        attributes_are_copied(total);
        variables_are_copied(pinned, stream);
        CUDA(cudaFree(total));
        CUDA(cudaFreeHost(pinned));
        CUDA(cudaStreamDestroy(stream));
    });
}
