/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and offsets of structures that programs and the library share, from the headers. */
#include <cuda_runtime_api.h>
#include <cuda.h>

#include <stddef.h>
#include <stdio.h>

#define SIZE(type)         printf("%s %zu\n", #type, sizeof(type))
#define PLACE(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))
#define VALUE(name)        printf("%s %lld\n", #name, (long long)(name))

typedef struct cudaDeviceProp prop;
typedef struct cudaPointerAttributes pointer;
typedef struct cudaFuncAttributes func;
typedef struct cudaMemPoolProps pool;
typedef struct cudaGraphNodeParams node;

static void device_properties(void)
{
    SIZE(struct cudaMemcpyAttributes);
    SIZE(struct cudaMemcpy3DBatchOp);
    PLACE(struct cudaMemcpy3DBatchOp, extent);
    SIZE(CUmemPoolProps);
    PLACE(CUmemPoolProps, maxSize);
    SIZE(CUmemcpyAttributes);
    SIZE(CUDA_MEMCPY2D);
    PLACE(CUDA_MEMCPY2D, dstPitch);
    SIZE(CUDA_MEMCPY3D);
    PLACE(CUDA_MEMCPY3D, dstHeight);
    SIZE(CUstreamBatchMemOpParams);
    PLACE(CUstreamBatchMemOpParams, waitValue.value64);
    PLACE(CUstreamBatchMemOpParams, writeValue.flags);
    VALUE(CU_STREAM_MEM_OP_BARRIER);
    SIZE(prop);
    SIZE(node);
    PLACE(node, kernel);
    PLACE(node, memcpy.copyParams);
    PLACE(node, memset.height);
    PLACE(node, host.userData);
    PLACE(node, graph.ownership);
    PLACE(node, eventRecord.event);
    PLACE(node, alloc.accessDescs);
    PLACE(node, alloc.dptr);
    PLACE(node, free.dptr);
    PLACE(prop, uuid);
    PLACE(prop, totalGlobalMem);
    PLACE(prop, warpSize);
    PLACE(prop, maxGridSize);
    PLACE(prop, major);
    PLACE(prop, multiProcessorCount);
    PLACE(prop, concurrentKernels);
    PLACE(prop, pciBusID);
    PLACE(prop, unifiedAddressing);
    PLACE(prop, memoryBusWidth);
    PLACE(prop, l2CacheSize);
    PLACE(prop, sharedMemPerMultiprocessor);
    PLACE(prop, managedMemory);
    PLACE(prop, cooperativeLaunch);
    PLACE(prop, sharedMemPerBlockOptin);
    PLACE(prop, maxBlocksPerMultiProcessor);
    PLACE(prop, memoryPoolsSupported);
    PLACE(prop, ipcEventSupported);
    PLACE(prop, hostNumaId);
    PLACE(prop, reserved);
}

static void structs_of_the_runtime(void)
{
    SIZE(pointer);
    PLACE(pointer, device);
    PLACE(pointer, devicePointer);
    PLACE(pointer, hostPointer);
    SIZE(func);
    PLACE(func, maxThreadsPerBlock);
    PLACE(func, maxDynamicSharedSizeBytes);
    SIZE(pool);
    PLACE(pool, location);
    PLACE(pool, maxSize);
    PLACE(pool, usage);
    SIZE(cudaIpcMemHandle_t);
    SIZE(cudaIpcEventHandle_t);
    SIZE(struct cudaMemLocation);
    SIZE(struct cudaMemAccessDesc);
    SIZE(struct cudaMemPoolPtrExportData);
    SIZE(cudaLaunchConfig_t);
    PLACE(cudaLaunchConfig_t, stream);
    SIZE(cudaLaunchAttribute);
    PLACE(cudaLaunchAttribute, val);
    SIZE(struct cudaKernelNodeParams);
    SIZE(struct cudaHostNodeParams);
    SIZE(struct cudaMemsetParams);
    SIZE(struct cudaMemcpy3DParms);
    SIZE(struct cudaMemcpy3DPeerParms);
    SIZE(cudaGraphEdgeData);
    SIZE(cudaGraphExecUpdateResultInfo);
    SIZE(cudaGraphInstantiateParams);
    SIZE(struct cudaPitchedPtr);
    SIZE(struct cudaExtent);
    SIZE(dim3);
    SIZE(float4);
    SIZE(double4);
    SIZE(double4_16a);
    SIZE(double4_32a);
    SIZE(longlong4_32a);
    SIZE(uchar3);
}

static void structs_of_the_driver(void)
{
    SIZE(CUmemAllocationProp);
    PLACE(CUmemAllocationProp, location);
    SIZE(CUmemAccessDesc);
    SIZE(CUipcMemHandle);
    SIZE(CUuuid);
    SIZE(CUDA_KERNEL_NODE_PARAMS);
    PLACE(CUDA_KERNEL_NODE_PARAMS, ctx);
    SIZE(CUgraphNodeParams);
    PLACE(CUgraphNodeParams, kernel.kern);
    PLACE(CUgraphNodeParams, memcpy.copyParams);
    PLACE(CUgraphNodeParams, memset.ctx);
    PLACE(CUgraphNodeParams, alloc.dptr);
    SIZE(CUDA_MEMCPY3D_PEER);
    PLACE(CUDA_MEMCPY3D_PEER, dstContext);
    VALUE(CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    SIZE(CUlaunchConfig);
    PLACE(CUlaunchConfig, hStream);
    SIZE(CUlaunchAttribute);
    PLACE(CUlaunchAttribute, value);
}

static void values(void)
{
    VALUE(cudaErrorGraphExecUpdateFailure);
    VALUE(cudaErrorStreamCaptureImplicit);
    VALUE(cudaDevAttrHostNumaId);
    VALUE(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    VALUE(cudaMemPoolAttrUsedMemHigh);
    VALUE(cudaLaunchAttributePriority);
    VALUE(cudaGraphNodeTypeMemFree);
    VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
    VALUE(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
    VALUE(CU_STREAM_WAIT_VALUE_NOR);
    VALUE(CUDART_VERSION);
    VALUE(CUDA_VERSION);
}

int main(void)
{
    device_properties();
    structs_of_the_runtime();
    structs_of_the_driver();
    values();
    return 0;
}
