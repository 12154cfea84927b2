/* SPDX-License-Identifier: Apache-2.0 */
/* Device code in two files: variables and functions that the other defines (linked_more.cu), compiled with -rdc=true. */
#include "check.h"

extern __device__ int shared_counter;
extern __constant__ float shared_weights[];
extern __device__ int before;

__device__ int from_other_file(int x);
__global__ void kernel_of_other_file(int *out);

__device__ int before = 3;

__global__ void use(int *out)
{
    out[0] = from_other_file(2) + shared_counter;
    out[1] = (int)shared_weights[1] + before;
    shared_counter = 50;
}

static void test(int)
{
    int *out = managed<int>(4), n = 0;
    float w[2] = {8, 9};

    use<<<1, 1>>>(out);
    kernel_of_other_file<<<1, 1>>>(out + 2);
    DONE();
    EXPECT(out[0] == 20 + 7 && out[1] == 2 + 3 && out[2] == 50);
    CUDA(cudaMemcpyFromSymbol(&n, shared_counter, sizeof n));
    EXPECT(n == 50);
    CUDA(cudaMemcpyToSymbol(shared_weights, w, sizeof w));
    use<<<1, 1>>>(out);
    DONE();
    EXPECT(out[1] == 9 + 3);
    CUDA(cudaFree(out));
}

int main()
{
    return on_all_devices(test);
}
