/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: blocks, tiles, grids whose blocks wait for each other. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

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

/* Each step needs what all blocks did in the one before. */
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
    a[0] = 1;
    CUDA(cudaLaunchCooperativeKernel((const void *)steps, dim3(8), dim3(64), arguments, 0, 0));
    DONE();
    for (int i = 0; i < n; i++) sum += a[i];
    EXPECT(sum == 1 << count);
    EXPECT(cudaLaunchCooperativeKernel((const void *)large, dim3(10000), dim3(1024), of_large, 0, 0) == cudaErrorCooperativeLaunchTooLarge);
    EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    CUDA(cudaFree(out));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
}

int main()
{
    return on_all_devices(test);
}
