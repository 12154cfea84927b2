/* SPDX-License-Identifier: Apache-2.0 */
// A program with a kernel for a GPU.
#include <cstdio>

__managed__ int shared_with_host;

__global__ void add(int *p)
{
    *p += 1;
}

int main()
{
    int *p;

    if (cudaMalloc(&p, sizeof *p) || cudaMemset(p, 0, sizeof *p)) return 1;
    add<<<1, 1>>>(p);
    std::printf("launch %d\n", (int)cudaGetLastError());
    return cudaDeviceSynchronize() || cudaFree(p);
}
