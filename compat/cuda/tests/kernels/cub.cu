/* SPDX-License-Identifier: Apache-2.0 */
/* CUB as programs use it: in warps, in blocks, and for whole devices. */
#include "check.h"

#include <cub/cub.cuh>
#include <cuda/functional>

#include <algorithm>
#include <vector>

static unsigned value_at(int i)
{
    return (unsigned)i * 2654435761u >> 12;
}

/* ---- warps ---- */

__global__ void warps(const int *in, int *sums, int *scan, float *most)
{
    using Reduce = cub::WarpReduce<int>;
    using Scan = cub::WarpScan<int>;
    using Most = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage reduce[4];
    __shared__ typename Scan::TempStorage scans[4];
    __shared__ typename Most::TempStorage mosts[4];
    int warp = (int)threadIdx.x / 32, i = (int)threadIdx.x, sum, before;
    float largest;

    sum = Reduce(reduce[warp]).Sum(in[i]);
    Scan(scans[warp]).ExclusiveSum(in[i], before);
    largest = Most(mosts[warp]).Reduce((float)in[i], cuda::maximum<>());
    scan[i] = before;
    if (i % 32 == 0) {
        sums[warp] = sum;
        most[warp] = largest;
    }
}

static void test_warps()
{
    int *in = managed<int>(128), *sums = managed<int>(4), *scan = managed<int>(128);
    float *most = managed<float>(4);

    for (int i = 0; i < 128; i++) in[i] = (int)(value_at(i) % 1000);
    warps<<<1, 128>>>(in, sums, scan, most);
    DONE();
    for (int w = 0; w < 4; w++) {
        int sum = 0, largest = 0;

        for (int i = 32 * w; i < 32 * w + 32; i++) {
            EXPECT(scan[i] == sum);
            sum += in[i];
            largest = std::max(largest, in[i]);
        }
        EXPECT(sums[w] == sum && most[w] == (float)largest);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(sums));
    CUDA(cudaFree(scan));
    CUDA(cudaFree(most));
}

/* ---- blocks ---- */

enum { THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS };

__global__ void blocks(const unsigned *in, unsigned *sorted, unsigned *scanned, unsigned *total)
{
    using Load = cub::BlockLoad<unsigned, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<unsigned, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS>;
    using Scan = cub::BlockScan<unsigned, THREADS>;
    using Reduce = cub::BlockReduce<unsigned, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } room;
    unsigned items[ITEMS], sums[ITEMS], sum;
    int at = (int)blockIdx.x * TILE;

    Load(room.load).Load(in + at, items);
    __syncthreads();
    sum = Reduce(room.reduce).Sum(items);
    if (threadIdx.x == 0) total[blockIdx.x] = sum;
    __syncthreads();
    Scan(room.scan).InclusiveSum(items, sums);
    __syncthreads();
    Store(room.store).Store(scanned + at, sums);
    __syncthreads();
    Sort(room.sort).Sort(items);
    __syncthreads();
    Store(room.store).Store(sorted + at, items);
}

static void test_blocks()
{
    const int n = 3 * TILE;
    unsigned *in = managed<unsigned>(n), *sorted = managed<unsigned>(n), *scanned = managed<unsigned>(n),
             *total = managed<unsigned>(3);

    for (int i = 0; i < n; i++) in[i] = value_at(i);
    blocks<<<3, THREADS>>>(in, sorted, scanned, total);
    DONE();
    for (int b = 0; b < 3; b++) {
        std::vector<unsigned> expected(in + b * TILE, in + (b + 1) * TILE);
        unsigned sum = 0;

        for (int i = 0; i < TILE; i++) {
            sum += expected[i];
            EXPECT(scanned[b * TILE + i] == sum);
        }
        EXPECT(total[b] == sum);
        std::sort(expected.begin(), expected.end());
        for (int i = 0; i < TILE; i++) EXPECT(sorted[b * TILE + i] == expected[i]);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(sorted));
    CUDA(cudaFree(scanned));
    CUDA(cudaFree(total));
}

/* ---- devices: each function is called for its bytes, and then with them ---- */

template <class F> static void with_room(F call)
{
    size_t bytes = 0;
    void *room = nullptr;

    CUDA(call(room, bytes));
    CUDA(cudaMalloc(&room, bytes));
    CUDA(call(room, bytes));
    DONE();
    CUDA(cudaFree(room));
}

struct is_odd {
    __host__ __device__ bool operator()(unsigned x) const
    {
        return x & 1;
    }
};

static void test_device()
{
    const int n = 20000;
    unsigned *in = managed<unsigned>(n), *out = managed<unsigned>(n), *values = managed<unsigned>(n),
             *values_out = managed<unsigned>(n), *one = managed<unsigned>(1);
    int *count = managed<int>(1), *bins = managed<int>(16);
    unsigned sum = 0, most = 0;
    std::vector<unsigned> expected, odd;

    for (int i = 0; i < n; i++) {
        in[i] = value_at(i);
        values[i] = (unsigned)i;
        sum += in[i];
        most = std::max(most, in[i]);
        if (in[i] & 1) odd.push_back(in[i]);
    }
    with_room([&](void *room, size_t &bytes) { return cub::DeviceReduce::Sum(room, bytes, in, one, n); });
    EXPECT(*one == sum);
    with_room([&](void *room, size_t &bytes) { return cub::DeviceReduce::Max(room, bytes, in, one, n); });
    EXPECT(*one == most);

    with_room([&](void *room, size_t &bytes) { return cub::DeviceScan::ExclusiveSum(room, bytes, in, out, n); });
    sum = 0;
    for (int i = 0; i < n; i++) {
        EXPECT(out[i] == sum);
        sum += in[i];
    }

    with_room([&](void *room, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(room, bytes, in, out, values, values_out, n);
    });
    expected.assign(in, in + n);
    std::sort(expected.begin(), expected.end());
    for (int i = 0; i < n; i++) EXPECT(out[i] == expected[i] && in[values_out[i]] == out[i]);

    with_room(
        [&](void *room, size_t &bytes) { return cub::DeviceSelect::If(room, bytes, in, out, count, n, is_odd()); });
    EXPECT(*count == (int)odd.size());
    for (int i = 0; i < *count; i++) EXPECT(out[i] == odd[i]);

    with_room([&](void *room, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(room, bytes, in, bins, 17, 0u, 1u << 20, n);
    });
    for (int b = 0; b < 16; b++)
        EXPECT(bins[b] == std::count_if(in, in + n, [b](unsigned x) { return x >> 16 == (unsigned)b; }));

    for (void *p :
         {(void *)in, (void *)out, (void *)values, (void *)values_out, (void *)one, (void *)count, (void *)bins})
        CUDA(cudaFree(p));
}

int main()
{
    return on_all_devices([](int) {
        test_warps();
        test_blocks();
        test_device();
    });
}
