/* SPDX-License-Identifier: Apache-2.0 */
/* Headers in any order, headers without functions, and settings without effect on CPUs: as programs of GPUs have them. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <math_constants.h>
#include <device_launch_parameters.h>

#include "check.h"

__global__ void scale(float4 *v, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) v[i] = scaled(v[i], CUDART_PI_F);
}

/* A window of memory that stays in the cache, of a stream and of a launch. */
static void test_window(float4 *v)
{
    cudaStream_t stream, other;
    cudaStreamAttrValue value = {}, back;

    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamCreate(&other));
    CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20));
    value.accessPolicyWindow.base_ptr = v;
    value.accessPolicyWindow.num_bytes = 100 * sizeof *v;
    value.accessPolicyWindow.hitRatio = 0.6f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    CUDA(cudaStreamCopyAttributes(other, stream));
    CUDA(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &back));
    EXPECT(back.accessPolicyWindow.base_ptr == v && back.accessPolicyWindow.hitProp == cudaAccessPropertyPersisting);
    CUDA(cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &back));
    EXPECT(back.syncPolicy == cudaSyncPolicyAuto);
    value.accessPolicyWindow.hitRatio = 1.5f;
    EXPECT(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value) == cudaErrorInvalidValue);
    scale<<<blocks_for(100, 32), 32, 0, stream>>>(v, 100);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaCtxResetPersistingL2Cache());
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(other));
    (void)cudaGetLastError();
}

static unsigned long long of_graphs(int device, cudaGraphMemAttributeType attribute)
{
    unsigned long long bytes = 0;

    CUDA(cudaDeviceGetGraphMemAttribute(device, attribute, &bytes));
    return bytes;
}

static void test_graph_memory(int device)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *p;
    unsigned long long zero = 0, before = of_graphs(device, cudaGraphMemAttrUsedMemCurrent);

    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMallocAsync(&p, 1 << 20, stream));
    CUDA(cudaMemsetAsync(p, 0, 1 << 20, stream));
    CUDA(cudaFreeAsync(p, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(of_graphs(device, cudaGraphMemAttrUsedMemHigh) >= before + (1 << 20));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaDeviceGraphMemTrim(device));
    EXPECT(of_graphs(device, cudaGraphMemAttrReservedMemCurrent) == before);
    CUDA(cudaDeviceSetGraphMemAttribute(device, cudaGraphMemAttrUsedMemHigh, &zero));
    EXPECT(of_graphs(device, cudaGraphMemAttrUsedMemHigh) == before);
    EXPECT(cudaDeviceGraphMemTrim(1000) == cudaErrorInvalidDevice);
    (void)cudaGetLastError();
    CUDA(cudaStreamDestroy(stream));
}

static void test_notes()
{
    nvtxEventAttributes_t note = {};

    note.version = NVTX_VERSION;
    note.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    note.colorType = NVTX_COLOR_ARGB;
    note.messageType = NVTX_MESSAGE_TYPE_ASCII;
    note.message.ascii = "a range";
    nvtxRangePushEx(&note);
    nvtxRangePushA("inside");
    nvtxRangePop();
    nvtxRangePop();
    nvtxMark("here");
    nvtxRangeEnd(nvtxRangeStartA("from here"));
    nvtxDomainDestroy(nvtxDomainCreateA("a domain"));
}

static void test(int device)
{
    float4 *v = managed<float4>(100);
    CUmemAllocationProp wanted = {};
    CUuuid same = {};
    cudaUUID_t id = same;

    wanted.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    EXPECT(wanted.allocFlags.compressionType == 1 && id.bytes[15] == 0);
    for (int i = 0; i < 100; i++) v[i] = make_float4(0, 1, 2, i);
    test_window(v);
    EXPECT(v[99].w == 99 * CUDART_PI_F && v[5].y == CUDART_PI_F);
    test_graph_memory(device);
    test_notes();
    CUDA(cudaFree(v));
}

int main()
{
    return on_all_devices(test);
}
