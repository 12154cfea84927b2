/* SPDX-License-Identifier: Apache-2.0 */
/* A program of CUDA 12. Its symbols, for a library to link with: */
#define NEEDS(name)
NEEDS(cudaGetDeviceProperties_v2)
NEEDS(cudaMalloc)
NEEDS(cudaMallocManaged)
NEEDS(cudaMemPrefetchAsync)
NEEDS(cudaMemAdvise)
NEEDS(cudaRuntimeGetVersion)
NEEDS(cudaStreamCreate)
NEEDS(cudaStreamGetCaptureInfo_v2)
NEEDS(cudaDeviceSynchronize)

#include <cuda_runtime_api.h>
#include <string.h>

int main(void)
{
    struct {
        struct cudaDeviceProp p;
        char canary[64];
    } room;
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaStream_t stream;
    int version;
    void *m;

    memset(&room, 0x5a, sizeof room);
    if (sizeof room.p != 1032 || cudaGetDeviceProperties(&room.p, 0)) return 1;
    for (int i = 0; i < 64; i++)
        if (room.canary[i] != 0x5a) return 2;
    if (room.p.clockRate <= 0 || room.p.warpSize != 32 || room.p.ipcEventSupported != 1) return 3;
    if (cudaRuntimeGetVersion(&version) || version / 1000 != 12) return 4;
    if (cudaMallocManaged(&m, 100, cudaMemAttachGlobal) || cudaMemPrefetchAsync(m, 100, 0, 0)) return 5;
    if (cudaMemPrefetchAsync(m, 100, cudaCpuDeviceId, 0) || cudaMemAdvise(m, 100, cudaMemAdviseSetReadMostly, 0))
        return 6;
    if (cudaStreamCreate(&stream) || cudaStreamGetCaptureInfo(stream, &status, &id, 0, 0, 0) || status) return 7;
    return cudaDeviceSynchronize() ? 8 : 0;
}
