/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuda_runtime_api.h - the functions of CUDA's runtime that the stand-in has, for C and C++.
 *
 * CUDA's manual describes them; docs/cuda.md lists the differences. Textures, surfaces, arrays, external memory and graphics are
 * not declared here; the library has them, and they return cudaErrorNotSupported.
 *
 * Streams: with CUDA_API_PER_THREAD_DEFAULT_STREAM defined before it, stream 0 is the thread's own.
 * Threads: every function may be called from any thread.
 */
#ifndef KOLO_CUDA_RUNTIME_API_H
#define KOLO_CUDA_RUNTIME_API_H

#include "driver_types.h"

#if defined(__cplusplus)
#define KOLO_CUDA_DEFAULT(value) = value
extern "C" {
#else
#define KOLO_CUDA_DEFAULT(value)
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define CUDARTAPI

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#include "kolo_cuda_per_thread.h"
#endif
#if CUDART_VERSION < 13000
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif

/* ---- errors, versions ---- */

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetValidDevices(int *list, int count);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to);
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value);
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value);
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);

/* ---- memory ---- */

cudaError_t cudaMalloc(void **ptr, size_t bytes);
cudaError_t cudaMallocHost(void **ptr, size_t bytes);
cudaError_t cudaMallocManaged(void **ptr, size_t bytes, unsigned int flags KOLO_CUDA_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned int flags);
cudaError_t cudaHostRegister(void *ptr, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t bytes KOLO_CUDA_DEFAULT(0),
                                     unsigned int flags KOLO_CUDA_DEFAULT(cudaMemAttachSingle));
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t bytes, struct cudaMemLocation where, unsigned int flags,
                                 cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where);
#else
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t bytes, int device, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, int device);
#endif

/* ---- copies ---- */

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width,
                            size_t height KOLO_CUDA_DEFAULT(0), unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array);
cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind);
cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                                  size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const struct cudaResourceDesc *resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *copy);
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *copy);
cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *copy, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemset(void *ptr, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemset3D(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent);
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent,
                              cudaStream_t stream KOLO_CUDA_DEFAULT(0));

/* ---- symbols: variables of devices ---- */

cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset KOLO_CUDA_DEFAULT(0),
                               enum cudaMemcpyKind kind KOLO_CUDA_DEFAULT(cudaMemcpyHostToDevice));
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset KOLO_CUDA_DEFAULT(0),
                                 enum cudaMemcpyKind kind KOLO_CUDA_DEFAULT(cudaMemcpyDeviceToHost));
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream KOLO_CUDA_DEFAULT(0));

/* ---- memory in stream order, and its pools ---- */

cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *where);
cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
                                               unsigned int flags);
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *in, enum cudaMemAllocationHandleType type,
                                                 unsigned int flags);
cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *out, void *ptr);
cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *in);

/* ---- streams ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue *value);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *argument,
                                  unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream KOLO_CUDA_DEFAULT(0));
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream KOLO_CUDA_DEFAULT(0),
                                     unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

/* ---- between processes ---- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr);
cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *ptr);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);

/* ---- kernels ---- */

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *symbol);
cudaError_t cudaFuncGetName(const char **name, const void *function);
cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_threads,
                                                          size_t shared_bytes);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_threads,
                                                                   size_t shared_bytes, unsigned int flags);
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                      int block_threads);

/* ---- capture and graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id KOLO_CUDA_DEFAULT(0),
                                     cudaGraph_t *graph KOLO_CUDA_DEFAULT(0),
                                     const cudaGraphNode_t **dependencies KOLO_CUDA_DEFAULT(0),
                                     const cudaGraphEdgeData **edges KOLO_CUDA_DEFAULT(0),
                                     size_t *count KOLO_CUDA_DEFAULT(0));
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id KOLO_CUDA_DEFAULT(0),
                                        cudaGraph_t *graph KOLO_CUDA_DEFAULT(0),
                                        const cudaGraphNode_t **dependencies KOLO_CUDA_DEFAULT(0),
                                        size_t *count KOLO_CUDA_DEFAULT(0));
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v2
#endif
#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes,
                                 cudaStream_t stream);
cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list, unsigned long long flags,
                                   cudaStream_t stream);
#else
cudaError_t cudaMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes,
                                 size_t *failed, cudaStream_t stream);
cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list, size_t *failed,
                                   unsigned long long flags, cudaStream_t stream);
#endif
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count);
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, struct cudaMemAllocNodeParams *parameters);
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *parameters);
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *ptr);
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *ptr);
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                        size_t count, cudaEvent_t event);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                      size_t count, cudaEvent_t event);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child);
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                           size_t count, const void *symbol, const void *from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                             size_t count, void *to, const void *symbol, size_t bytes, size_t offset,
                                             enum cudaMemcpyKind kind);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int initial KOLO_CUDA_DEFAULT(0),
                                             unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 size_t bytes, size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t bytes,
                                                   size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *parameters);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *parameters);
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *after, cudaGraphEdgeData *edges,
                                         size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *before, cudaGraphEdgeData *edges,
                                           size_t *count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t count);
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from);
#else
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t from, cudaGraphNode_t to);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                             struct cudaGraphNodeParams *parameters);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *after, size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *before, size_t *count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        size_t count);
#endif
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                     const void *from, size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t bytes, size_t offset,
                                                       enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child);
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *parameters);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy, unsigned int count,
                                 unsigned int flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count KOLO_CUDA_DEFAULT(1));
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count KOLO_CUDA_DEFAULT(1));
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count KOLO_CUDA_DEFAULT(1), unsigned int flags KOLO_CUDA_DEFAULT(0));
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count KOLO_CUDA_DEFAULT(1));

/* ---- the driver's functions ---- */

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found KOLO_CUDA_DEFAULT(0));
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found KOLO_CUDA_DEFAULT(0));

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#if defined(__cplusplus)
}
#endif

/* ---- small structs made ---- */

static inline struct cudaPitchedPtr make_cudaPitchedPtr(void *ptr, size_t pitch, size_t width, size_t height)
{
    struct cudaPitchedPtr p;

    p.ptr = ptr;
    p.pitch = pitch;
    p.xsize = width;
    p.ysize = height;
    return p;
}

static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z)
{
    struct cudaPos p;

    p.x = x;
    p.y = y;
    p.z = z;
    return p;
}

static inline struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth)
{
    struct cudaExtent e;

    e.width = width;
    e.height = height;
    e.depth = depth;
    return e;
}

#endif
