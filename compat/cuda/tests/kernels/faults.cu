/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of kernels: the code, that it is sticky, the message, and that the process goes on. Each in a process of its own. */
#include "faults.cuh"

#include <cassert>
#include <csignal>
#include <cstring>

__global__ void writes_to(int *p)
{
    if (threadIdx.x == 5 && blockIdx.x == 2) *p = 1;
}

__global__ void asserts(int limit)
{
    assert((int)threadIdx.x < limit);
}

__global__ void traps()
{
    if (threadIdx.x == 3) __trap();
}

__global__ void waits_forever(int *p)
{
    __shared__ int s[64];

    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32)
        __syncthreads();
    else
        s[threadIdx.x] += __shfl_sync(threadIdx.x == 40 ? 0xffffffffu : 0xfffffffeu, s[threadIdx.x], 1);
    *p = s[0];
}

__device__ int deep(int n, int *p)
{
    volatile int room[256];

    room[n & 255] = n;
    return n ? deep(n - 1, p) + room[n & 255] : *p;
}

/* Far too large for any stack. */
__global__ void has_large_frame(int *p)
{
    volatile int room[1 << 18];

    room[*p] = 1;
    *p = room[*p] + room[*p + 1];
}

__global__ void meets_no_instruction(int *p)
{
#if !defined(__CUDA_ARCH__)
    if (*p) __builtin_trap();
#endif
    *p = 1;
}

__global__ void recurses(int *p)
{
    *p = deep(*p, p);
}

__global__ void divides(int *results, const int *operands, const long long *large)
{
    int i = threadIdx.x;
    int a = operands[2 * i], b = operands[2 * i + 1];
    long long c = large[2 * i], d = large[2 * i + 1];

    results[4 * i] = a / b;
    results[4 * i + 1] = a % b;
    results[4 * i + 2] = (int)(c / d);
    results[4 * i + 3] = (int)((unsigned)a / (unsigned)b) + (short)((short)a / (short)1);
}

__global__ void says(int *count)
{
    count[threadIdx.x] = printf("thread %d of %s\n", (int)threadIdx.x, "two");
}

static int divisions()
{
    const int least = -2147483647 - 1;
    int *operands = managed<int>(8), *results = managed<int>(16);
    long long *large = managed<long long>(8);

    operands[0] = 7, operands[1] = 0;
    operands[2] = least, operands[3] = -1;
    operands[4] = -7, operands[5] = 2;
    operands[6] = 0, operands[7] = 0;
    for (int i = 0; i < 8; i++) large[i] = operands[i];
    large[2] = -9223372036854775807ll - 1;
    divides<<<1, 4>>>(results, operands, large);
    DONE();
    EXPECT(results[0] == -1 && results[1] == -1 && results[2] == -1 && results[3] == -1 + 7);
    EXPECT(results[4] == least && results[5] == 0 && results[6] == 0);
    EXPECT(results[8] == -3 && results[9] == -1 && results[10] == -3 && results[12] == -1);
    return 0;
}

static int large_frame()
{
    int *p = managed<int>(1);

    has_large_frame<<<1, 32>>>(p);
    return fails_with(cudaErrorIllegalAddress);
}

static int no_instruction()
{
    int *p = managed<int>(1);

    *p = 1;
    meets_no_instruction<<<1, 1>>>(p);
    return fails_with(cudaErrorIllegalInstruction);
}

static int prints()
{
    int *count = managed<int>(2);

    says<<<1, 2>>>(count);
    DONE();
    EXPECT(count[0] == 2 && count[1] == 2);
    return 0;
}

static int own_handler()
{
    int *p = managed<int>(1);

    writes_to<<<1, 1>>>(p);
    DONE();
    raise(SIGSEGV); /* not of a kernel */
    return 1;
}

static int recursion(size_t stack, int depth)
{
    int *p = managed<int>(1);

    CUDA(cudaDeviceSetLimit(cudaLimitStackSize, stack));
    *p = depth;
    recurses<<<1, 1>>>(p);
    return 0;
}

/* A loop of a graph with a kernel that fails, and so never ends it. */
static int loop()
{
    int *nowhere = nullptr;
    void *arguments[] = {&nowhere};
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    cudaGraphNodeParams p = {};
    cudaKernelNodeParams k = {};

    CUDA(cudaGraphCreate(&graph, 0));
    p.type = cudaGraphNodeTypeConditional;
    CUDA(cudaGraphConditionalHandleCreate(&p.conditional.handle, graph, 1, cudaGraphCondAssignDefault));
    p.conditional.type = cudaGraphCondTypeWhile;
    p.conditional.size = 1;
    CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
    k.func = (void *)writes_to;
    k.gridDim = dim3(3);
    k.blockDim = dim3(32);
    k.kernelParams = arguments;
    CUDA(cudaGraphAddKernelNode(&node, p.conditional.phGraph_out[0], nullptr, 0, &k));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, 0));
    return fails_with(cudaErrorIllegalAddress);
}

int main()
{
    child("null", [] { return writes_to<<<3, 32>>>(nullptr), fails_with(cudaErrorIllegalAddress); },
          "kernel|writes_to|block (2, 0, 0), thread (5, 0, 0)|access to memory that is not there");
    child("wild", [] { return writes_to<<<3, 32>>>((int *)0x123456789000), fails_with(cudaErrorIllegalAddress); }, "0x123456789000");
    child("assert", [] { return asserts<<<2, 32>>>(7), fails_with(cudaErrorAssert); },
          "faults.cu:16: |asserts|block: [|,0,0], thread: [7,0,0] Assertion `(int)threadIdx.x < limit` failed.");
    child("trap", [] { return traps<<<2, 32>>>(), fails_with(cudaErrorLaunchFailure); }, "traps|thread (3, 0, 0)|__trap");
    child("deadlock", [] { return waits_forever<<<1, 64>>>(managed<int>(1)), fails_with(cudaErrorLaunchFailure); },
          "waits_forever|all 64 threads that have not returned wait for each other|32 at |faults.cu:30, at barrier 0 of the block|2 at |faults.cu:32, for the "
          "lanes of mask 0xffffffff, thread (32, 0, 0)");
    child("overflow", [] { return recursion(65536, 1000), fails_with(cudaErrorIllegalAddress); }, "stack of 65536 bytes is full");
    child("larger stack", [] { return recursion(4 << 20, 1000), cudaDeviceSynchronize() != cudaSuccess; }, "");
    child("large frame", large_frame, "has_large_frame|bytes is full");
    child("loop of a graph", loop, "writes_to|access to memory that is not there");
    child("no instruction", no_instruction, "meets_no_instruction|an illegal instruction");
    child("division", divisions, "");
    child("printf", prints, "thread 0 of two|thread 1 of two");
    child("signal of the program", [] {
        signal(SIGSEGV, [](int) { _exit(0); });
        return own_handler();
    }, "");
    std::printf("done\n");
    return 0;
}
