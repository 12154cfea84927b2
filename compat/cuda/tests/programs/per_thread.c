/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled for default streams of threads: stream 0 of this thread is not the legacy one. */
#include <cuda_runtime_api.h>
#include <stdio.h>

static volatile int go;

static void hold(void *argument)
{
    (void)argument;
    while (!go) continue;
}

int main(void)
{
    unsigned long long zero, own;
    cudaStream_t other;
    char *p, *q;

    if (cudaMalloc((void **)&p, 10) || cudaMallocHost((void **)&q, 10)) return 1;
    if (cudaStreamGetId(0, &zero) || cudaStreamGetId(cudaStreamPerThread, &own) || zero != own) return 2;
    if (cudaStreamCreate(&other) || cudaLaunchHostFunc(other, hold, 0)) return 3;
    if (cudaMemset(p, 5, 10) || cudaMemcpyAsync(q, p, 10, cudaMemcpyDeviceToHost, 0)) return 4;
    if (cudaStreamSynchronize(0) || q[9] != 5) return 5; /* the legacy stream would wait for the other one */
    go = 1;
    return cudaDeviceSynchronize() ? 6 : 0;
}
