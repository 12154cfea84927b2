/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of devices in a program; for C and C++, and for either toolkit's headers. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct cudaDeviceProp p;
    int count = 77, version = 0, i;
    char host[100], back[100];
    void *device;

    memset(host, 7, sizeof host);
    cudaError_t none = cudaGetDeviceCount(&count);
    if (none) printf("error %d count %d\n", (int)none, count);
    if (none || cudaRuntimeGetVersion(&version)) return 1;
    for (i = 0; i < count; i++) {
        if (cudaSetDevice(i) || cudaGetDeviceProperties(&p, i) || p.warpSize != 32) return 2;
        if (cudaMalloc(&device, 100) || cudaMemcpy(device, host, 100, cudaMemcpyHostToDevice)) return 3;
        if (cudaMemcpy(back, device, 100, cudaMemcpyDeviceToHost) || memcmp(host, back, 100)) return 4;
        if (cudaFree(device)) return 5;
    }
    printf("devices %d version %d properties %d\n", count, version, (int)sizeof p);
    return 0;
}
