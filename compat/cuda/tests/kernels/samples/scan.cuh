/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix sums: up and down a tree in padded shared memory; and in a single pass, where blocks wait for the published sums of earlier blocks. */
#pragma once

#define LOG_BANKS               5
#define CONFLICT_FREE_OFFSET(i) ((i) >> LOG_BANKS)

__global__ void scan_blocks(int *out, const int *in, int *sums, int n)
{
    extern __shared__ int temp[];
    int t = threadIdx.x, size = 2 * blockDim.x, base = blockIdx.x * size, ai = t, bi = t + size / 2, offset = 1;

    temp[ai + CONFLICT_FREE_OFFSET(ai)] = base + ai < n ? in[base + ai] : 0;
    temp[bi + CONFLICT_FREE_OFFSET(bi)] = base + bi < n ? in[base + bi] : 0;
    for (int d = size >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            temp[b + CONFLICT_FREE_OFFSET(b)] += temp[a + CONFLICT_FREE_OFFSET(a)];
        }
        offset *= 2;
    }
    if (t == 0) {
        int last = size - 1 + CONFLICT_FREE_OFFSET(size - 1);
        if (sums) sums[blockIdx.x] = temp[last];
        temp[last] = 0;
    }
    for (int d = 1; d < size; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            int &low = temp[a + CONFLICT_FREE_OFFSET(a)], &high = temp[b + CONFLICT_FREE_OFFSET(b)], before = low;
            low = high;
            high += before;
        }
    }
    __syncthreads();
    if (base + ai < n) out[base + ai] = temp[ai + CONFLICT_FREE_OFFSET(ai)];
    if (base + bi < n) out[base + bi] = temp[bi + CONFLICT_FREE_OFFSET(bi)];
}

__global__ void add_to_blocks(int *out, const int *sums, int n)
{
    for (unsigned int k = 0; k < 2; k++) {
        unsigned int i = (blockIdx.x * 2 + k) * blockDim.x + threadIdx.x;
        if (i < (unsigned int)n) out[i] += sums[blockIdx.x];
    }
}

/* A part's state: its flag above, its sum below; 1 is of the part alone, 2 of all up to it. */
typedef unsigned long long part_state;

__device__ unsigned int next_part;

__global__ void scan_in_one_pass(int *out, const int *in, volatile part_state *states, int n)
{
    __shared__ unsigned int part;
    __shared__ int of_warp[8], before;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

    if (threadIdx.x == 0) part = atomicAdd(&next_part, 1u); /* in the order in which blocks begin */
    __syncthreads();
    int i = part * blockDim.x + threadIdx.x, own = i < n ? in[i] : 0, upto = own;
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(~0u, upto, d);
        if (lane >= d) upto += below;
    }
    if (lane == 31) of_warp[warp] = upto;
    __syncthreads();
    for (int w = 0; w < warp; w++) upto += of_warp[w];
    if (threadIdx.x == blockDim.x - 1) {
        states[part] = (part_state)(part == 0 ? 2 : 1) << 32 | (unsigned int)upto;
        __threadfence();
        int sum = 0;
        for (int p = (int)part - 1; p >= 0;) {
            part_state s = states[p];

            __threadfence();
            if (s >> 32 == 0) continue;
            sum += (int)(unsigned int)s;
            if (s >> 32 == 2) break;
            p--;
        }
        if (part) states[part] = (part_state)2 << 32 | (unsigned int)(sum + upto);
        __threadfence();
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = before + upto - own;
}

static void test_scan()
{
    const int n = 3000, size = 256, blocks = (n + size - 1) / size;
    int *in = managed<int>(n), *out = managed<int>(n), *sums = managed<int>(blocks), sum = 0;
    part_state *states = managed<part_state>(blocks);
    auto expect_scanned = [&] {
        DONE();
        sum = 0;
        for (int i = 0; i < n; sum += in[i++]) EXPECT(out[i] == sum);
    };

    for (int i = 0; i < n; i++) in[i] = i % 13 - 2;
    scan_blocks<<<blocks, size / 2, (size + size / 32) * sizeof(int)>>>(out, in, sums, n);
    scan_blocks<<<1, 16, 33 * sizeof(int)>>>(sums, sums, nullptr, blocks);
    add_to_blocks<<<blocks, size / 2>>>(out, sums, n);
    expect_scanned();
    unsigned int zero = 0;
    CUDA(cudaMemcpyToSymbol(next_part, &zero, sizeof zero));
    CUDA(cudaMemset(out, 0, n * sizeof(int)));
    scan_in_one_pass<<<blocks, size>>>(out, in, states, n);
    expect_scanned();
    for (int *p : {in, out, sums}) CUDA(cudaFree(p));
    CUDA(cudaFree(states));
}
