/* SPDX-License-Identifier: Apache-2.0 */
/* Sums: in dynamic shared memory of any type, with the block's size as a template argument; and in one pass, by whichever block is last. */
#pragma once

template <class T> struct SharedMemory {
    __device__ operator T *()
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
};

template <class T> __inline__ __device__ T warp_sum(T value)
{
#pragma unroll
    for (int offset = warpSize / 2; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

template <class T, unsigned int blockSize, bool nIsPow2>
__global__ void reduce_blocks(const T *__restrict__ g_idata, T *__restrict__ g_odata, unsigned int n)
{
    T *sdata = SharedMemory<T>();
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockSize * 2 + threadIdx.x, gridSize = blockSize * 2 * gridDim.x;
    T mySum = 0;

    while (i < n) {
        mySum += g_idata[i];
        if (nIsPow2 || i + blockSize < n) mySum += g_idata[i + blockSize];
        i += gridSize;
    }
    sdata[tid] = mySum;
    __syncthreads();
    if (blockSize >= 512 && tid < 256) sdata[tid] = mySum = mySum + sdata[tid + 256];
    __syncthreads();
    if (blockSize >= 256 && tid < 128) sdata[tid] = mySum = mySum + sdata[tid + 128];
    __syncthreads();
    if (blockSize >= 128 && tid < 64) sdata[tid] = mySum = mySum + sdata[tid + 64];
    __syncthreads();
    if (tid < 32) {
        if (blockSize >= 64) mySum += sdata[tid + 32];
        mySum = warp_sum(mySum);
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}

template <class T> void reduce(unsigned int threads, unsigned int blocks, const T *in, T *out, unsigned int n)
{
    size_t bytes = threads * sizeof(T);
    bool pow2 = (n & (n - 1)) == 0;

#define REDUCE(size)                                                                                                   \
    case size:                                                                                                         \
        if (pow2)                                                                                                      \
            reduce_blocks<T, size, true><<<dim3(blocks), dim3(size), bytes>>>(in, out, n);                             \
        else                                                                                                           \
            reduce_blocks<T, size, false><<<dim3(blocks), dim3(size), bytes>>>(in, out, n);                            \
        break;
    switch (threads) {
        REDUCE(512)
        REDUCE(256)
        REDUCE(128)
        REDUCE(64)
    }
#undef REDUCE
}

__device__ unsigned int blocks_done = 0;

__global__ void reduce_in_one_pass(const float *in, volatile float *parts, float *out, int n)
{
    __shared__ float of_warp[32];
    __shared__ bool is_last;
    float sum = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) {
            parts[blockIdx.x] = sum;
            __threadfence();
            is_last = atomicInc(&blocks_done, gridDim.x) == gridDim.x - 1;
        }
    }
    __syncthreads();
    if (!is_last) return;
    sum = 0;
    for (int i = threadIdx.x; i < (int)gridDim.x; i += blockDim.x) sum += parts[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
    if (threadIdx.x == 0) blocks_done = 0;
}

template <class T> static void sums_of(int n)
{
    T *in = managed<T>(n), *out = managed<T>(64), expected = 0;

    for (int i = 0; i < n; i++) expected += in[i] = (T)(i % 101 - 30);
    for (unsigned int threads : {64, 128, 256, 512}) {
        T sum = 0;

        reduce<T>(threads, 7, in, out, n);
        DONE();
        for (int i = 0; i < 7; i++) sum += out[i];
        EXPECT(sum == expected);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

static void test_reduction()
{
    const int n = 10000;
    float *in = managed<float>(n), *parts = managed<float>(16), *out = managed<float>(1), expected = 0;

    sums_of<int>(9999);
    sums_of<int>(1 << 14);
    sums_of<double>(5000);
    for (int i = 0; i < n; i++) expected += in[i] = (float)(i % 7);
    for (int turn = 1; turn <= 3; turn++) reduce_in_one_pass<<<16, 128>>>(in, parts, out, n);
    DONE();
    EXPECT(*out == 3 * expected);
    for (float *p : {in, parts, out}) CUDA(cudaFree(p));
}
