/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of blocks, and the shared memory of the others in them. */
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

/* Each block counts a part of the bins, for all blocks of its cluster. */
__global__ void histogram(int *bins, int bins_of_block, const int *in, int n)
{
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();

    for (int i = threadIdx.x; i < bins_of_block; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        int *theirs = cluster.map_shared_rank(own, in[i] / bins_of_block);

        atomicAdd(theirs + in[i] % bins_of_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_of_block; i += blockDim.x)
        atomicAdd(&bins[cluster.block_rank() * bins_of_block + i], own[i]);
}

/* A variable of shared memory, in two directions; extents by the kernel. */
__global__ void __cluster_dims__(2, 2, 1) neighbours(int *out)
{
    __shared__ int value[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), block = blockIdx.x + gridDim.x * blockIdx.y;

    value[threadIdx.x] = (int)(block * 1000 + threadIdx.x);
    cluster.sync();
    int *theirs = cluster.map_shared_rank(value, (int)(rank ^ 3));
    out[block * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
    if (cluster.query_shared_rank(theirs) != (rank ^ 3) || cluster.num_blocks() != 4 || cluster.dim_blocks().y != 2) out[0] = -1;
    cluster.sync();
}

static cudaError_t launch(int grid, int cluster, int *bins, const int *in, int n)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute[1];

    config.gridDim = grid;
    config.blockDim = 64;
    config.dynamicSmemBytes = 32 / cluster * sizeof(int);
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = cluster;
    attribute[0].val.clusterDim.y = 1;
    attribute[0].val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, histogram, bins, 32 / cluster, in, n);
}

static void test(int)
{
    const int n = 3200;
    int *in = managed<int>(n), *bins = managed<int>(32), *out = managed<int>(16 * 64);

    for (int i = 0; i < n; i++) in[i] = i * 7 % 32;
    for (int cluster : {1, 2, 4, 8}) {
        for (int i = 0; i < 32; i++) bins[i] = 0;
        CUDA(launch(16, cluster, bins, in, n));
        DONE();
        for (int i = 0; i < 32; i++) EXPECT(bins[i] == n / 32);
    }
    neighbours<<<dim3(4, 4), 64>>>(out);
    DONE();
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            for (int t = 0; t < 64; t++) EXPECT(out[(y * 4 + x) * 64 + t] == ((y ^ 1) * 4 + (x ^ 1)) * 1000 + 63 - t);
    EXPECT(launch(15, 2, bins, in, n) == cudaErrorInvalidConfiguration);
    EXPECT(launch(32, 32, bins, in, n) == cudaErrorInvalidClusterSize);
    (void)cudaGetLastError(); /* these are kept */
    CUDA(cudaFree(in));
    CUDA(cudaFree(bins));
    CUDA(cudaFree(out));
}

int main()
{
    setenv("KOLO_HOST_DEVICES", "8", 0);
    return on_all_devices(test);
}
