/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: blocks, tiles, grids with blocks that wait for each other. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

__global__ void tiles(int *out, int n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    auto warp = cg::tiled_partition<32>(block);
    int t = block.thread_rank(), sum = cg::reduce(tile, t, cg::plus<int>()), bad = 0;

    for (int i = 4; i; i /= 2) t += tile.shfl_down(t, i);
    if (tile.thread_rank() == 0 && tile.size() == 8) bad += t != sum;
    bad += cg::reduce(warp, (int)block.thread_rank() % 32, cg::greater<int>()) != (int)warp.size() - 1;
    bad += tile.meta_group_rank() != block.thread_rank() / 8;
    bad += cg::inclusive_scan(tile, 1) != (int)tile.thread_rank() + 1;
    bad += tile.any(tile.thread_rank() == 0) != 1;
    bad += tile.ballot(1) != (1u << tile.size()) - 1;
    bad += (int)block.size() != n;
    cg::sync(block);
    block.sync();
    cg::coalesced_group here = cg::coalesced_threads();
    if (here.thread_rank() == 0) atomicAdd(out, (int)here.size());
    atomicAdd(out + 1, bad);
}

/* Tiles of more than a warp, each at its own pace. */
template <int Size> __global__ void large_tiles(int *bad, int n)
{
    __shared__ cg::block_tile_memory<1024> room;
    auto block = cg::this_thread_block(room);
    auto tile = cg::tiled_partition<Size>(block);
    int t = tile.thread_rank(), count = tile.num_threads(), wrong = 0;

    for (unsigned turn = 0; turn <= tile.meta_group_rank(); turn++) {
        int sum = cg::reduce(tile, t + (int)turn, cg::plus<int>());
        wrong += sum != count * (count - 1) / 2 + count * (int)turn;
        tile.sync();
    }
    wrong += cg::reduce(tile, t, cg::greater<int>()) != count - 1;
    wrong += cg::inclusive_scan(tile, t + 1) != (t + 1) * (t + 2) / 2;
    wrong += cg::exclusive_scan(tile, 2) != 2 * t;
    wrong += tile.shfl(t * 3, 33) != 99;
    wrong += tile.any(t == count - 1) != 1 || tile.any(t == count) || tile.all(t < count - 1) || !tile.all(t < count);
    wrong += (int)tile.meta_group_size() != (n + Size - 1) / Size;
    atomicAdd(bad, wrong);
}

/* Lanes that come to the same place find each other, whatever the others do. */
__global__ void gather(int *counts, int *bad)
{
    int t = threadIdx.x, wrong = 0, limit = t % 4;

    if (t % 3 == 0) {
        cg::coalesced_group here = cg::coalesced_threads();
        int rank = here.thread_rank();

        wrong += here.shfl(t, 0) != t / 32 * 32 + (3 - t / 32 * 32 % 3) % 3;
        wrong += here.shfl_up(t, 1) != (rank ? t - 3 : t);
        wrong += here.shfl_down(rank, 1) != (rank == (int)here.size() - 1 ? rank : rank + 1);
        wrong += cg::reduce(here, rank, cg::plus<int>()) != (int)(here.size() * (here.size() - 1) / 2);
        wrong += cg::inclusive_scan(here, 2) != 2 * rank + 2 || cg::exclusive_scan(here, 2) != 2 * rank;
        wrong += here.ballot(rank % 2) != (0xaaaaaaaau & ((1u << here.size()) - 1));
        if (rank == 0) atomicAdd(&counts[0], (int)here.size());
    } else {
        auto here = cg::coalesced_threads();
        auto halves = cg::binary_partition(here, t % 2 == 1);

        wrong += cg::reduce(halves, t % 2, cg::plus<int>()) != (t % 2 ? (int)halves.size() : 0);
        if (here.thread_rank() == 0) atomicAdd(&counts[1], (int)here.size());
    }
    __syncwarp();
    for (int i = 0; i < limit; i++) { /* fewer each time: those that are done wait behind the loop */
        unsigned mask = __activemask();

        if ((int)(__ffs(mask) - 1) == t % 32) atomicAdd(&counts[2 + i], __popc(mask));
        __syncwarp(mask);
    }
    wrong += cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()), t % 5).size() < 6;
    atomicAdd(bad, wrong);
}

/* One half produces the data that the other consumes. */
__global__ void handed_over(int *out, const int *in, int rounds)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> full, free;
    __shared__ int part[32];
    auto block = cg::this_thread_block();

    if (block.thread_rank() == 0) {
        init(&full, blockDim.x);
        init(&free, blockDim.x);
    }
    block.sync();
    for (int r = 0; r < rounds; r++) {
        if (block.thread_rank() < 32) {
            part[threadIdx.x] = in[r * 32 + threadIdx.x];
            (void)full.arrive();
            free.arrive_and_wait();
        } else {
            full.arrive_and_wait();
            out[r * 32 + threadIdx.x - 32] = part[63 - threadIdx.x];
            (void)free.arrive();
        }
    }
    block.sync();
    cg::memcpy_async(block, part, in, sizeof(int) * 32);
    cg::wait(block);
    if (block.thread_rank() == 40) out[rounds * 32] = part[31];
}

static void test_groups()
{
    int *counts = managed<int>(8), *bad = managed<int>(1), *in = managed<int>(512), *out = managed<int>(512);

    for (int threads : {1024, 512}) {
        large_tiles<64><<<2, threads>>>(bad, threads);
        large_tiles<128><<<2, threads>>>(bad, threads);
        large_tiles<512><<<2, threads>>>(bad, threads);
        DONE();
        EXPECT(*bad == 0);
    }
    gather<<<1, 96>>>(counts, bad);
    DONE();
    EXPECT(*bad == 0 && counts[0] == 32 && counts[1] == 64);
    EXPECT(counts[2] == 72 && counts[3] == 48 && counts[4] == 24);
    for (int i = 0; i < 512; i++) in[i] = i;
    handed_over<<<1, 64>>>(out, in, 10);
    DONE();
    for (int i = 0; i < 320; i++) EXPECT(out[i] == i / 32 * 32 + 31 - i % 32);
    EXPECT(out[320] == 31);
    for (int *p : {counts, bad, in, out}) CUDA(cudaFree(p));
}

/* Each step needs the results of all blocks in the step before. */
__global__ void steps(double *a, double *b, int n, int count)
{
    cg::grid_group grid = cg::this_grid();

    for (int s = 0; s < count; s++) {
        for (unsigned long long i = grid.thread_rank(); i < (unsigned long long)n; i += grid.size())
            b[i] = a[(i + n - 1) % n] + a[(i + 1) % n];
        grid.sync();
        double *c = a;
        a = b;
        b = c;
    }
}

__global__ void __launch_bounds__(1024) large(int *p)
{
    cg::this_grid().sync();
    *p = 1;
}

static void test(int)
{
    const int n = 1000, count = 20;
    int *out = managed<int>(2), length = n, steps_to_do = count;
    double *a = managed<double>(n), *b = managed<double>(n), sum = 0;
    void *arguments[] = {&a, &b, &length, &steps_to_do}, *of_large[] = {&out};

    for (int threads : {64, 128, 20, 1}) {
        out[0] = out[1] = 0;
        tiles<<<3, threads>>>(out, threads);
        DONE();
        EXPECT(out[1] == 0 && out[0] == 3 * threads);
    }
    test_groups();
    a[0] = 1;
    CUDA(cudaLaunchCooperativeKernel((const void *)steps, dim3(8), dim3(64), arguments, 0, 0));
    DONE();
    for (int i = 0; i < n; i++) sum += a[i];
    EXPECT(sum == 1 << count);
    EXPECT(cudaLaunchCooperativeKernel((const void *)large, dim3(10000), dim3(1024), of_large, 0, 0) ==
           cudaErrorCooperativeLaunchTooLarge);
    EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    CUDA(cudaFree(out));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
}

int main()
{
    return on_all_devices(test);
}
