// SPDX-License-Identifier: Apache-2.0
// Kernels by the driver's functions: launches of every form, attributes, and nodes of graphs.
#include <cooperative_groups.h>
#include <cuda.h>

#include "check.h"

#define CU(call) EXPECT((call) == CUDA_SUCCESS)

namespace cg = cooperative_groups;

__global__ void __launch_bounds__(128) add(int *to, int value)
{
    __shared__ int all[4];

    all[threadIdx.x % 4] = value;
    __syncthreads();
    atomicAdd(to, all[threadIdx.x % 4]);
}

__global__ void add_twice(int *to)
{
    atomicAdd(to, 1);
    cg::this_grid().sync();
    int seen = *to;
    cg::this_grid().sync();
    atomicAdd(to, seen);
}

static CUfunction function_of(const void *kernel)
{
    cudaFunction_t function = nullptr;

    CUDA(cudaGetFuncBySymbol(&function, kernel));
    return function;
}

static int taken(int *total)
{
    CUDA(cudaDeviceSynchronize());
    int value = *total;
    *total = 0;
    return value;
}

static void launches(int *total, CUstream stream)
{
    int value = 3;
    void *arguments[] = {&total, &value};
    CUfunction function = function_of((const void *)add), together = function_of((const void *)add_twice);

    CU(cuLaunchKernel(function, 2, 1, 1, 8, 1, 1, 0, stream, arguments, nullptr));
    EXPECT(taken(total) == 2 * 8 * 3);
    EXPECT(cuLaunchKernel(function, 0, 1, 1, 8, 1, 1, 0, stream, arguments, nullptr) != CUDA_SUCCESS);
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 129, 1, 1, 0, stream, arguments, nullptr) ==
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(cuLaunchKernel((CUfunction)total, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) != CUDA_SUCCESS);
    CUDA(cudaGetLastError()); // which is the runtime's

    CUlaunchAttribute cooperative = {};
    CUlaunchConfig config = {};
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    CU(cuLaunchKernelEx(&config, together, arguments, nullptr));
    EXPECT(taken(total) == 4 + 4 * 4);
    CU(cuLaunchCooperativeKernel(together, 3, 1, 1, 2, 1, 1, 0, stream, arguments));
    EXPECT(taken(total) == 6 + 6 * 6);
}

// A program that was compiled for a default stream of each thread: stream 0 is the thread's.
static void launches_of_threads(int *total)
{
    CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **) = nullptr;
    CUresult (*together)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                         void **) = nullptr;
    int value = 3;
    void *arguments[] = {&total, &value};
    CUlaunchConfig config = {};
    CUgraph graph;
    size_t count = 0;

    CU(cuGetProcAddress("cuLaunchKernelEx", (void **)&launch, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                        nullptr));
    CU(cuGetProcAddress("cuLaunchCooperativeKernel", (void **)&together, 12000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    CU(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(launch(&config, function_of((const void *)add), arguments, nullptr));
    CU(together(function_of((const void *)add_twice), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments));
    CU(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    EXPECT(taken(total) == 0); // it is in the graph
    CU(cuGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 2);
    CU(cuGraphDestroy(graph));
}

static void what_they_are(void)
{
    CUfunction function = function_of((const void *)add);
    int number = 0, blocks = 0;
    size_t offset = 0, bytes = 0;
    const char *name = nullptr;

    CU(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EXPECT(number == 128);
    CU(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    EXPECT(number >= 16);
    CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10));
    CU(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    EXPECT(number == 60 << 10);
    CU(cuFuncGetParamInfo(function, 1, &offset, &bytes));
    EXPECT(offset == sizeof(int *) && bytes == sizeof(int));
    CU(cuFuncGetName(&name, function));
    EXPECT(name && name[0]);
    CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0));
    EXPECT(blocks > 0);
    EXPECT(cuFuncGetAttribute(&number, (CUfunction_attribute)99, function) == CUDA_ERROR_INVALID_VALUE);
}

static int replayed(CUgraphExec exec, CUstream stream, int *total)
{
    CU(cuGraphLaunch(exec, stream));
    return taken(total);
}

static CUDA_KERNEL_NODE_PARAMS node_of(CUfunction function, unsigned threads, void **arguments)
{
    CUDA_KERNEL_NODE_PARAMS p = {};

    p.func = function;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
    p.blockDimX = threads;
    p.kernelParams = arguments;
    return p;
}

static void nodes(int *total, CUstream stream)
{
    int value = 5, other = 7;
    void *arguments[] = {&total, &value}, *more[] = {&total, &other};
    CUDA_KERNEL_NODE_PARAMS p = node_of(function_of((const void *)add), 2, arguments), said = {};
    CUgraphNodeParams any = {};
    CUkernelNodeAttrValue priority = {};
    CUgraphNode first, second, third;
    CUgraphNodeType type;
    CUgraphExec exec;
    CUgraph graph;

    CU(cuGraphCreate(&graph, 0));
    CU(cuGraphAddKernelNode(&first, graph, nullptr, 0, &p));
    cudaKernel_t kernel; // its other handle
    CUDA(cudaGetKernel(&kernel, (const void *)add));
    any.type = CU_GRAPH_NODE_TYPE_KERNEL;
    any.kernel.kern = kernel;
    any.kernel.gridDimX = any.kernel.gridDimY = any.kernel.gridDimZ = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
    any.kernel.blockDimX = 4;
    any.kernel.kernelParams = arguments;
    CU(cuGraphAddNode(&second, graph, &first, nullptr, 1, &any));
    p = node_of(nullptr, 10, arguments);
    p.kern = kernel;
    CU(cuGraphAddKernelNode(&third, graph, &second, 1, &p));
    CU(cuGraphNodeGetType(second, &type));
    EXPECT(type == CU_GRAPH_NODE_TYPE_KERNEL);
    CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT(replayed(exec, stream, total) == 16 * 5);

    CU(cuGraphKernelNodeGetParams(first, &said));
    EXPECT(said.func == function_of((const void *)add) && said.blockDimX == 2 && *(int *)said.kernelParams[1] == 5);
    p = node_of(said.func, 1, more);
    CU(cuGraphExecKernelNodeSetParams(exec, first, &p));
    EXPECT(replayed(exec, stream, total) == 7 + 14 * 5);
    CU(cuGraphKernelNodeSetParams(first, &p));
    any.kernel.blockDimX = 3;
    CU(cuGraphExecNodeSetParams(exec, second, &any));
    EXPECT(replayed(exec, stream, total) == 7 + 13 * 5);
    CU(cuGraphNodeSetParams(second, &any));
    CU(cuGraphKernelNodeGetParams(second, &said));
    EXPECT(said.blockDimX == 3);

    priority.priority = -1;
    CU(cuGraphKernelNodeSetAttribute(first, (CUkernelNodeAttrID)CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
    CU(cuGraphKernelNodeCopyAttributes(second, first));
    priority.priority = 0;
    CU(cuGraphKernelNodeGetAttribute(second, (CUkernelNodeAttrID)CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
    EXPECT(priority.priority == -1);
    p.func = (CUfunction)total;
    EXPECT(cuGraphAddKernelNode(&first, graph, nullptr, 0, &p) != CUDA_SUCCESS);
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(graph));
}

int main()
{
    CU(cuInit(0));
    return on_all_devices([](int) {
        int *total = managed<int>(1);
        CUstream stream;

        CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        launches(total, stream);
        launches_of_threads(total);
        what_they_are();
        nodes(total, stream);
        CU(cuStreamDestroy(stream));
        CUDA(cudaFree(total));
    });
}
