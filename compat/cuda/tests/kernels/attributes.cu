/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory in its shapes, and attributes and occupancy of kernels that have it. */
#include "check.h"

struct vector {
    float x, y, z;

    __host__ __device__ vector()
    {
    } /* does not define x, y and z */
};

template <class T, int N> struct columns {
    T at[N];

    __device__ columns()
    {
    }
};

__shared__ int of_file[4];

__device__ int through_file(int value)
{
    of_file[threadIdx.x % 4] = value;
    return of_file[threadIdx.x % 4];
}

__global__ void plain(int *out)
{
    out[threadIdx.x] = through_file(threadIdx.x);
}

template <class T, int N> __global__ void __launch_bounds__(256) in_shapes(T *out)
{
    static __shared__ T grid[N][2], single;
    __shared__ struct {
        T u;
        double v;
    } pair;
    __shared__ columns<vector, N> vectors;
    volatile __shared__ char last[3];

    grid[threadIdx.x % N][1] = T(threadIdx.x);
    vectors.at[threadIdx.x % N].y = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        single = grid[N - 1][1];
        pair.u = T(vectors.at[N - 1].y);
        pair.v = 2;
        last[2] = 3;
    }
    __syncthreads();
    out[threadIdx.x] = single + pair.u + T(pair.v) + T(last[2]);
}

__global__ void dynamic(int *out)
{
    extern __shared__ double numbers[];
    __shared__ int offset;

    if (threadIdx.x == 0) offset = 5;
    numbers[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = int(numbers[blockDim.x - 1 - threadIdx.x]) + offset;
}

static void attributes()
{
    cudaFuncAttributes a;

    CUDA(cudaFuncGetAttributes(&a, plain));
    EXPECT(a.maxThreadsPerBlock == 1024);
    CUDA(cudaFuncGetAttributes(&a, in_shapes<float, 8>));
    EXPECT(a.maxThreadsPerBlock == 256 && a.sharedSizeBytes == 64 + 4 + 4 + 16 + 96 + 3);
    CUDA(cudaFuncGetAttributes(&a, (const void *)in_shapes<double, 2>));
    EXPECT(a.sharedSizeBytes == 32 + 8 + 16 + 24 + 3);
    CUDA(cudaFuncGetAttributes(&a, dynamic));
    EXPECT(a.sharedSizeBytes == sizeof(int) && a.constSizeBytes == 0);
}

static void occupancy()
{
    cudaDeviceProp prop;
    int device, blocks = 0, grid = 0, block = 0;
    size_t bytes = 0;

    CUDA(cudaGetDevice(&device));
    CUDA(cudaGetDeviceProperties(&prop, device));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 1024, 0));
    EXPECT(blocks == prop.maxThreadsPerMultiProcessor / 1024);
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 32, 40 << 10));
    EXPECT(blocks == (int)(prop.sharedMemPerMultiprocessor / ((40 << 10) + sizeof(int))));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, in_shapes<float, 8>, 512, 0));
    EXPECT(blocks == 0);
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, in_shapes<float, 8>));
    EXPECT(block == 256 && grid == prop.multiProcessorCount * (prop.maxThreadsPerMultiProcessor / 256));
    CUDA(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, dynamic,
                                                        [](int threads) { return threads * sizeof(double); }));
    EXPECT(block > 0 && block <= 1024 && grid >= prop.multiProcessorCount);
    CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, dynamic, 2, 64));
    EXPECT(bytes > 0 && bytes <= prop.sharedMemPerMultiprocessor / 2 - sizeof(int));
}

static void test(int)
{
    int *out = managed<int>(256);
    float *real = managed<float>(256);

    attributes();
    occupancy();
    plain<<<1, 4>>>(out);
    in_shapes<float, 8><<<2, 64>>>(real);
    DONE();
    EXPECT(out[3] == 3 && real[0] == 63 + 1 + 2 + 3 && real[63] == real[0]);
    dynamic<<<1, 64, 64 * sizeof(double)>>>(out);
    DONE();
    EXPECT(out[0] == 63 + 5 && out[63] == 5);
    in_shapes<float, 8><<<1, 512>>>(real);
    EXPECT(cudaGetLastError() == cudaErrorLaunchOutOfResources);
    CUDA(cudaFree(out));
    CUDA(cudaFree(real));
}

int main()
{
    return on_all_devices(test);
}
