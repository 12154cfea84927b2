/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of bytes, four at a time: counted in shared memory by warps of their own, then merged. */
#pragma once

#define BINS       256
#define WARP_COUNT 4

typedef unsigned int uint;

inline __device__ void add_word(uint *of_warp, uint data)
{
    atomicAdd(of_warp + ((data >> 0) & 0xFFU), 1);
    atomicAdd(of_warp + ((data >> 8) & 0xFFU), 1);
    atomicAdd(of_warp + ((data >> 16) & 0xFFU), 1);
    atomicAdd(of_warp + ((data >> 24) & 0xFFU), 1);
}

__global__ void histogram_parts(uint *parts, const uchar4 *data, uint count)
{
    __shared__ uint counts[WARP_COUNT * BINS];
    uint *mine = counts + (threadIdx.x >> 5) * BINS;

#pragma unroll
    for (uint i = 0; i < (WARP_COUNT * BINS) / (WARP_COUNT * 32); i++) counts[threadIdx.x + i * WARP_COUNT * 32] = 0;
    __syncthreads();
    for (uint at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += blockDim.x * gridDim.x)
        add_word(mine, *reinterpret_cast<const uint *>(&data[at]));
    __syncthreads();
    for (uint bin = threadIdx.x; bin < BINS; bin += WARP_COUNT * 32) {
        uint sum = 0;
        for (uint w = 0; w < WARP_COUNT; w++) sum += counts[bin + w * BINS];
        parts[blockIdx.x * BINS + bin] = sum;
    }
}

__global__ void __launch_bounds__(BINS) merge_histograms(uint *out, const uint *parts, uint count)
{
    uint sum = 0;
    __shared__ uint data[BINS];

    for (uint i = threadIdx.x; i < count; i += BINS) sum += parts[blockIdx.x + i * BINS];
    data[threadIdx.x] = sum;
    for (uint stride = BINS / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        if (threadIdx.x < stride) data[threadIdx.x] += data[threadIdx.x + stride];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = data[0];
}

static void test_histogram()
{
    const uint words = 4000, blocks = 6;
    uchar4 *data = managed<uchar4>(words);
    uint *parts = managed<uint>(blocks * BINS), *out = managed<uint>(BINS), expected[BINS] = {}, x = 1;

    for (uint i = 0; i < words; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = make_uchar4(x >> 24, x >> 16 & 255, i % 3, 255);
        expected[data[i].x]++, expected[data[i].y]++, expected[data[i].z]++, expected[data[i].w]++;
    }
    histogram_parts<<<blocks, WARP_COUNT * 32>>>(parts, data, words);
    merge_histograms<<<BINS, BINS>>>(out, parts, blocks);
    DONE();
    for (uint i = 0; i < BINS; i++) EXPECT(out[i] == expected[i]);
    CUDA(cudaFree(data));
    CUDA(cudaFree(parts));
    CUDA(cudaFree(out));
}
