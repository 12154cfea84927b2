/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that launch kernels: children of blocks, recursion, tails, streams and errors. */
#include "check.h"

/* ---- children see their block's writes, and are done with their parent ---- */

__global__ void add(int *sums, const int *values, int n)
{
    extern __shared__ int part[];

    part[threadIdx.x] = (int)threadIdx.x < n ? values[threadIdx.x] : 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < n; i++) atomicAdd(sums, part[i]);
}

__global__ void parent(int *sums, int *values, int n)
{
    int *mine = values + n * (int)blockIdx.x;

    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) mine[i] = i + (int)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) add<<<1, n, n * sizeof(int)>>>(sums + blockIdx.x, mine, n);
}

static void children()
{
    const int blocks = 20, n = 64;
    int *sums = managed<int>(blocks), *values = managed<int>(blocks * n);

    parent<<<blocks, 32>>>(sums, values, n);
    DONE();
    for (int b = 0; b < blocks; b++) EXPECT(sums[b] == n * (n - 1) / 2 + n * b);
    CUDA(cudaFree(sums));
    CUDA(cudaFree(values));
}

/* ---- recursion: a sort that divides ---- */

__global__ void sort(int *a, int low, int high)
{
    int pivot, i = low - 1, t;

    if (low >= high) return;
    pivot = a[(low + high) / 2];
    for (int j = high + 1;;) {
        do i++;
        while (a[i] < pivot);
        do j--;
        while (a[j] > pivot);
        if (i >= j) {
            i = j;
            break;
        }
        t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
    sort<<<1, 1>>>(a, low, i);
    sort<<<1, 1>>>(a, i + 1, high);
}

static void recursion()
{
    const int n = 200;
    int *a = managed<int>(n);

    for (int i = 0; i < n; i++) a[i] = (int)((unsigned)i * 2654435761u >> 8) % 1000;
    sort<<<1, 1>>>(a, 0, n - 1);
    DONE();
    for (int i = 1; i < n; i++) EXPECT(a[i - 1] <= a[i]);
    CUDA(cudaFree(a));
}

/* ---- behind the whole grid ---- */

__global__ void one(int *count)
{
    atomicAdd(count, 1);
}

/* The log has the counts that tails see. */
__global__ void tail(const int *count, int *log, int rounds)
{
    int at = atomicAdd(log, 1);

    log[1 + at] = *count;
    if (rounds > 1) tail<<<1, 1, 0, cudaStreamTailLaunch>>>(count, log, rounds - 1);
}

__global__ void with_tail(int *count, int *log)
{
    one<<<2, 3>>>(count);
    one<<<1, 1, 0, cudaStreamFireAndForget>>>(count);
    if (blockIdx.x == 0) tail<<<1, 1, 0, cudaStreamTailLaunch>>>(count, log, 3);
}

static void tails()
{
    const int blocks = 9;
    int *count = managed<int>(1), *log = managed<int>(8);

    with_tail<<<blocks, 1>>>(count, log);
    one<<<1, 1>>>(count);
    DONE();
    EXPECT(*count == 7 * blocks + 1 && log[0] == 3);
    for (int i = 0; i < 3; i++) EXPECT(log[1 + i] == 7 * blocks);
    CUDA(cudaFree(count));
    CUDA(cudaFree(log));
}

/* ---- streams of a kernel ---- */

__global__ void append(int *log, int value)
{
    log[1 + log[0]++] = value;
}

__global__ void in_streams(int *log)
{
    cudaStream_t first, second;
    cudaEvent_t event;

    if (cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) != cudaSuccess) return;
    if (cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) != cudaSuccess) return;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return;
    for (int i = 0; i < 3; i++) append<<<1, 1, 0, first>>>(log, i);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    for (int i = 3; i < 5; i++) append<<<1, 1, 0, second>>>(log, i);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaEventDestroy(event);
}

static void streams()
{
    int *log = managed<int>(8);

    in_streams<<<1, 1>>>(log);
    DONE();
    EXPECT(log[0] == 5);
    for (int i = 0; i < 5; i++) EXPECT(log[1 + i] == i);
    CUDA(cudaFree(log));
}

/* ---- a kernel that a template and a function of the device launch ---- */

template <class T> __global__ void fill(T *to, T value)
{
    to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__device__ void fill_all(double *to, double value)
{
    fill<double><<<dim3(4), dim3(8)>>>(to, value);
}

__global__ void filler(double *to)
{
    fill_all(to, 2.5);
}

static void from_functions()
{
    double *to = managed<double>(32);

    filler<<<1, 1>>>(to);
    DONE();
    for (int i = 0; i < 32; i++) EXPECT(to[i] == 2.5);
    CUDA(cudaFree(to));
}

/* ---- errors are the block's, and the parent goes on ---- */

__global__ void wrong(int *codes)
{
    one<<<1, 2000>>>(codes);
    codes[0] = (int)cudaPeekAtLastError();
    codes[1] = (int)cudaGetLastError();
    codes[2] = (int)cudaGetLastError();
}

/* The grid of the host is level 0, and 24 more are below it. */
__global__ void deeper(int *codes)
{
    codes[0]++;
    deeper<<<1, 1>>>(codes);
    codes[1] = (int)cudaGetLastError();
}

#if defined(__KOLO_NVCC__) /* nvcc knows no such functions for devices */
__global__ void waits_for_itself(int *codes)
{
    codes[0] = (int)cudaDeviceSynchronize();
    codes[1] = (int)cudaStreamSynchronize(0);
}
#endif

static void errors()
{
    int *codes = managed<int>(4);

    wrong<<<1, 1>>>(codes);
    DONE();
    EXPECT(codes[0] == cudaErrorInvalidConfiguration && codes[1] == codes[0] && codes[2] == cudaSuccess);
    codes[0] = codes[1] = 0;
    deeper<<<1, 1>>>(codes);
    DONE();
    EXPECT(codes[0] == 25 && codes[1] == cudaErrorLaunchMaxDepthExceeded);
#if defined(__KOLO_NVCC__)
    waits_for_itself<<<2, 1>>>(codes);
    DONE();
    EXPECT(codes[0] == cudaErrorNotPermitted && codes[1] == cudaErrorNotPermitted);
#endif
    CUDA(cudaFree(codes));
}

int main()
{
    return on_all_devices([](int) {
        children();
        recursion();
        tails();
        streams();
        from_functions();
        errors();
    });
}
