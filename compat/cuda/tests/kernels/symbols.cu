/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of devices: each has its own, with the initial value; names of their kind used for other things meanwhile. */
#include "check.h"

struct setting {
    int n;
    float scale;
};

__constant__ float weights[4] = {1, 2, 3, 4};
__constant__ setting config = {10, 0.5f};
__device__ int counter = 100, others[3];
__device__ float *pointer;
__device__ const int fixed_size = 8;
static __device__ volatile int flag;
__managed__ int both = 5;

namespace inside
{
__device__ int counter = 7;
}

struct with_member {
    int counter;

    __device__ int get() const
    {
        return counter;
    }
};

__device__ int read_counter()
{
    return counter;
}

__device__ int shadowed(int counter)
{
    return counter + 1;
}

/* Static variables of functions are each device's own as well. */
__device__ int calls()
{
    static int n = 20, each[2] = {3, 4};
    static const int step = 1;

    each[1] += step;
    return atomicAdd(&n, step) + each[1];
}

__global__ void count_calls(float *out)
{
    out[threadIdx.x] = calls();
}

__global__ void use(float *out)
{
    int fixed[fixed_size];
    with_member m = {3};

    fixed[0] = 1;
    out[0] = weights[0] + weights[3] * config.scale + config.n;
    out[1] = read_counter();
    out[2] = shadowed(1) + m.counter + m.get();
    out[3] = inside::counter;
    atomicAdd(&counter, 1);
    others[1] = counter;
    {
        int counter = 50;

        out[4] = counter + sizeof(weights) + fixed[0];
    }
    out[5] = others[1];
    pointer = &weights[2];
    out[6] = *pointer + both;
    flag = 9;
    both = 6;
}

static void test(int device)
{
    float *out = managed<float>(8), w[4] = {5, 6, 7, (float)device};
    int n = 0;
    void *address = nullptr;
    size_t bytes = 0;

    both = 5;
    use<<<1, 1>>>(out);
    DONE();
    EXPECT(out[0] == 1 + 2 + 10 && out[1] == 100 && out[2] == 2 + 3 + 3 && out[3] == 7);
    EXPECT(out[4] == 50 + 16 + 1 && out[5] == 101 && out[6] == 3 + 5 && both == 6);
    CUDA(cudaMemcpyFromSymbol(&n, counter, sizeof n));
    EXPECT(n == 101);
    n = 1000 + device;
    CUDA(cudaMemcpyToSymbol(counter, &n, sizeof n));
    CUDA(cudaMemcpyToSymbol(weights, w, sizeof w));
    CUDA(cudaMemcpyToSymbol(weights, w, sizeof(float), 2 * sizeof(float)));
    use<<<1, 1>>>(out);
    DONE();
    EXPECT(out[0] == 5 + device * 0.5f + 10 && out[1] == 1000 + device && out[6] == 5 + 6);
    for (int i = 0; i < 2; i++) {
        count_calls<<<1, 1>>>(out);
        DONE();
        EXPECT(out[0] == 20 + i + 5 + i);
    }
    CUDA(cudaGetSymbolAddress(&address, others));
    CUDA(cudaGetSymbolSize(&bytes, others));
    EXPECT(bytes == 12);
    CUDA(cudaMemcpy(&n, (int *)address + 1, sizeof n, cudaMemcpyDeviceToHost));
    EXPECT(n == 1001 + device);
    CUDA(cudaFree(out));
}

int main()
{
    return on_all_devices(test);
}
