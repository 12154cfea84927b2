/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting: by digits, with ranks that lanes of a warp find for each other; and by a network of comparisons in shared memory. */
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace radix
{
enum { BITS = 4, DIGITS = 1 << BITS, THREADS = 128, WARPS = THREADS / 32 };

/* How often each digit occurs in a block's part: counts[digit][block]. */
__global__ void count(const unsigned *keys, unsigned *counts, int n, int shift)
{
    __shared__ unsigned local[DIGITS];
    int i = blockIdx.x * THREADS + threadIdx.x;

    if (threadIdx.x < DIGITS) local[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&local[keys[i] >> shift & (DIGITS - 1)], 1u);
    __syncthreads();
    if (threadIdx.x < DIGITS) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

/* One block makes starts of counts. */
__global__ void starts(unsigned *counts, int n)
{
    __shared__ unsigned sums[THREADS];
    __shared__ unsigned before;

    if (threadIdx.x == 0) before = 0;
    for (int base = 0; base < n; base += THREADS) {
        int i = base + threadIdx.x;
        unsigned own = i < n ? counts[i] : 0;

        sums[threadIdx.x] = own;
        __syncthreads();
        for (int d = 1; d < THREADS; d *= 2) {
            unsigned below = (int)threadIdx.x >= d ? sums[threadIdx.x - d] : 0;

            __syncthreads();
            sums[threadIdx.x] += below;
            __syncthreads();
        }
        if (i < n) counts[i] = before + sums[threadIdx.x] - own;
        __syncthreads();
        if (threadIdx.x == THREADS - 1) before += sums[threadIdx.x];
        __syncthreads();
    }
}

template <class V>
__global__ void __launch_bounds__(THREADS) scatter(const unsigned *keys, const V *values, unsigned *keys_out,
                                                   V *values_out, const unsigned *first, int n, int shift)
{
    __shared__ unsigned of_warp[WARPS][DIGITS];
    int i = blockIdx.x * THREADS + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned present = __ballot_sync(0xffffffffu, i < n), digit = i < n ? keys[i] >> shift & (DIGITS - 1) : 0, rank = 0;

    for (int d = threadIdx.x; d < WARPS * DIGITS; d += THREADS) of_warp[d / DIGITS][d % DIGITS] = 0;
    __syncthreads();
    if (i < n) {
        unsigned same = __match_any_sync(present, digit);

        rank = __popc(same & ((1u << lane) - 1));
        if (rank == 0) of_warp[warp][digit] = __popc(same);
    }
    __syncthreads();
    if (i >= n) return;
    for (int w = 0; w < warp; w++) rank += of_warp[w][digit];
    unsigned to = first[digit * gridDim.x + blockIdx.x] + rank;
    keys_out[to] = keys[i];
    values_out[to] = values[i];
}

template <class V>
void sort(unsigned *&keys, V *&values, unsigned *&other_keys, V *&other_values, unsigned *counts, int n)
{
    int blocks = (n + THREADS - 1) / THREADS;

    for (int shift = 0; shift < 32; shift += BITS) {
        count<<<blocks, THREADS>>>(keys, counts, n, shift);
        starts<<<1, THREADS>>>(counts, DIGITS * blocks);
        scatter<V><<<blocks, THREADS>>>(keys, values, other_keys, other_values, counts, n, shift);
        std::swap(keys, other_keys);
        std::swap(values, other_values);
    }
}
} // namespace radix

template <class T, class Less = bool (*)(T, T)> __device__ inline void compare_and_swap(T &a, T &b, bool up, Less less)
{
    if (less(b, a) == up) {
        T t = a;
        a = b;
        b = t;
    }
}

template <int N, class Less> __global__ void bitonic_sort(float *data, Less less)
{
    __shared__ float s[N];
    unsigned t = threadIdx.x;

    s[t] = data[blockIdx.x * N + t];
    s[t + N / 2] = data[blockIdx.x * N + t + N / 2];
    for (unsigned size = 2; size <= N; size <<= 1) {
        bool up = size == N || (t & (size / 2)) == 0;
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned pos = 2 * t - (t & (stride - 1));
            compare_and_swap(s[pos], s[pos + stride], up, less);
        }
    }
    __syncthreads();
    data[blockIdx.x * N + t] = s[t];
    data[blockIdx.x * N + t + N / 2] = s[t + N / 2];
}

static void test_sorting()
{
    const int n = 1500, part = 256;
    unsigned *keys = managed<unsigned>(n), *other_keys = managed<unsigned>(n), *counts = managed<unsigned>(16 * 12),
             x = 7;
    short *values = managed<short>(n), *other_values = managed<short>(n);
    float *data = managed<float>(2 * part);
    std::vector<int> order(n);
    std::vector<unsigned> before(n);

    for (int i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        before[i] = keys[i] = i % 4 ? x : x % 16; /* some of them often */
        values[i] = (short)i;
    }
    radix::sort(keys, values, other_keys, other_values, counts, n);
    DONE();
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return before[a] < before[b]; });
    for (int i = 0; i < n; i++) EXPECT(keys[i] == before[order[i]] && values[i] == order[i]);

    for (int i = 0; i < 2 * part; i++) data[i] = (float)(before[i] % 1000);
    std::vector<float> sorted(data, data + 2 * part);
    bitonic_sort<part><<<2, part / 2>>>(data, [] __device__(float a, float b) { return a > b; });
    DONE();
    std::sort(sorted.begin(), sorted.begin() + part, [](float a, float b) { return a > b; });
    std::sort(sorted.begin() + part, sorted.end(), [](float a, float b) { return a > b; });
    for (int i = 0; i < 2 * part; i++) EXPECT(data[i] == sorted[i]);
    for (void *p : std::initializer_list<void *>{keys, other_keys, counts, values, other_values, data})
        CUDA(cudaFree(p));
}
