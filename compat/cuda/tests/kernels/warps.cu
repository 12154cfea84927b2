/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the lanes of a warp, for every width, in whole and partial warps, among all lanes and within a branch. */
#include "check.h"

static const unsigned ALL = 0xffffffffu;

__device__ int source_of(int what, int lane, int n, int width, int live)
{
    int group = lane / width * width, s = lane;

    if (what == 0) s = group + n % width;
    if (what == 1) s = lane - n < group ? lane : lane - n;
    if (what == 2) s = lane + n >= group + width ? lane : lane + n;
    if (what == 3) s = (lane ^ n) >= group + width ? lane : lane ^ n;
    return s < live ? s : -1; // a lane that is not there has 0
}

template <typename T> __device__ T value_of(int lane)
{
    return (T)(lane * 3 + 1);
}

template <typename T> __device__ T shuffle(int what, T v, int n, int width)
{
    switch (what) {
    case 0: return __shfl_sync(ALL, v, n, width);
    case 1: return __shfl_up_sync(ALL, v, n, width);
    case 2: return __shfl_down_sync(ALL, v, n, width);
    default: return __shfl_xor_sync(ALL, v, n, width);
    }
}

template <typename T> __global__ void shuffles(int *bad)
{
    int lane = threadIdx.x % 32, live = min((int)blockDim.x - (int)threadIdx.x / 32 * 32, 32);

    for (int width = 1; width <= 32; width *= 2)
        for (int n = 0; n < 32; n++)
            for (int what = 0; what < 4; what++) {
                if (what && n >= width) continue;
                T got = shuffle(what, value_of<T>(lane), n, width);
                int s = source_of(what, lane, n, width, live);

                if (got != (s < 0 ? (T)0 : value_of<T>(s))) atomicAdd(bad, 1);
            }
}

__global__ void votes(int *bad)
{
    unsigned lane = threadIdx.x, wrong = 0;
    int all;

    wrong += __ballot_sync(ALL, lane & 1) != 0xaaaaaaaau;
    wrong += !__all_sync(ALL, lane < 32);
    wrong += __all_sync(ALL, lane != 7);
    wrong += !__any_sync(ALL, lane == 7);
    wrong += __any_sync(ALL, lane > 99);
    wrong += __match_any_sync(ALL, lane / 4) != 0xfu << lane / 4 * 4;
    wrong += __match_any_sync(ALL, (double)(lane % 2)) != (lane % 2 ? 0xaaaaaaaau : 0x55555555u);
    wrong += __match_all_sync(ALL, 5, &all) != ALL || !all;
    wrong += __match_all_sync(ALL, lane, &all) != 0 || all;
    wrong += __reduce_add_sync(ALL, lane) != 496;
    wrong += __reduce_min_sync(ALL, (int)lane - 5) != -5;
    wrong += __reduce_max_sync(ALL, (int)lane - 40) != -9;
    wrong += __reduce_min_sync(ALL, lane + 3) != 3;
    wrong += __reduce_and_sync(ALL, lane | 64) != 64;
    wrong += __reduce_or_sync(ALL, lane) != 31;
    wrong += __reduce_xor_sync(ALL, lane) != 0;
    if (wrong) atomicAdd(bad, wrong);
}

/* Two groups of lanes meet by themselves, each several times, at different places of the program. */
__global__ void divergent(int *bad)
{
    int lane = threadIdx.x % 32;
    unsigned odd = 0xaaaaaaaau, sum = 0;

    if (lane & 1) {
        for (int i = 0; i < 5; i++) sum += __reduce_add_sync(odd, lane);
        if (sum != 5 * 256) atomicAdd(bad, 1);
        if (__shfl_sync(odd, lane, 31) != 31) atomicAdd(bad, 1);
    } else {
        if (__ballot_sync(~odd, lane < 4) != 5) atomicAdd(bad, 1);
        __syncwarp(~odd);
    }
    __syncwarp();
    if (__popc(__ballot_sync(ALL, 1)) != 32) atomicAdd(bad, 1);
}

/* Lanes that have returned are not waited for. */
__global__ void exited(int *bad)
{
    int lane = threadIdx.x % 32;

    if (lane >= 20) return;
    if (__ballot_sync(ALL, 1) != 0xfffffu) atomicAdd(bad, 1);
    if (__reduce_add_sync(ALL, 1) != 20) atomicAdd(bad, 1);
}

/* The last lanes of a sum, which take from lanes that are not there: of another branch, and behind the end of the block. */
__global__ void sum_of_some(int *bad)
{
    int lane = threadIdx.x % 32;

    if (lane < 8) {
        int v = lane + 1;

        for (int d = warpSize / 2; d > 0; d >>= 1) v += __shfl_down_sync(0xff, v, d);
        if (lane == 0 && v != 36) atomicAdd(bad, 1);
    }
    __syncwarp();
    int all = 1;
    for (int d = warpSize / 2; d > 0; d >>= 1) all += __shfl_down_sync(ALL, all, d);
    if (lane == 0 && all != (threadIdx.x == 0 ? 32 : 12)) atomicAdd(bad, 1);
}

/* The usual sum of a block: shuffles, shared memory, a barrier. */
__global__ void block_sum(const float *in, float *out, int n)
{
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
#pragma unroll
    for (int d = warpSize / 2; d > 0; d >>= 1) v += __shfl_down_sync(ALL, v, d);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0;
    if (warp == 0) {
        for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(ALL, v, d);
        if (lane == 0) atomicAdd(out, v);
    }
}

/* One atomic for all lanes that are here, as libraries do it. */
__global__ void aggregated(int *counter)
{
    if (threadIdx.x % 3) {
        unsigned mask = __activemask();
        int leader = __ffs(mask) - 1, lane = threadIdx.x % 32, old = 0;

        if (lane == leader) old = atomicAdd(counter, __popc(mask));
        old = __shfl_sync(mask, old, leader);
    }
}

static void test(int)
{
    int *bad = managed<int>(1);
    float *in = managed<float>(10000), *out = managed<float>(1);

    for (int threads : {32, 64, 20, 45, 1, 1024}) {
        shuffles<int><<<2, threads>>>(bad);
        shuffles<unsigned><<<1, threads>>>(bad);
        shuffles<long long><<<1, threads>>>(bad);
        shuffles<unsigned long><<<1, threads>>>(bad);
        shuffles<float><<<1, threads>>>(bad);
        shuffles<double><<<1, threads>>>(bad);
    }
    DONE();
    EXPECT(*bad == 0);
    votes<<<3, 32>>>(bad);
    divergent<<<3, 64>>>(bad);
    exited<<<3, 64>>>(bad);
    sum_of_some<<<2, 44>>>(bad);
    DONE();
    EXPECT(*bad == 0);
    for (int i = 0; i < 10000; i++) in[i] = i % 16;
    block_sum<<<5, 256>>>(in, out, 10000);
    DONE();
    EXPECT(*out == 75000);
    aggregated<<<2, 96>>>(bad);
    DONE();
    EXPECT(*bad == 128);
    CUDA(cudaFree(bad));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

int main()
{
    return on_all_devices(test);
}
