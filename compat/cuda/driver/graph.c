/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.c - captures and graphs: other names for the runtime's, with the same handles and structures. graph_node.c has the nodes
 * with other parameters.
 */
#include "compat/cuda/driver/forward.h"

#undef cuGraphInstantiate
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphExecUpdate

KL_CU_SAME_LAYOUT(CUDA_HOST_NODE_PARAMS, struct cudaHostNodeParams);
KL_CU_SAME_LAYOUT(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams);
KL_CU_SAME_LAYOUT(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams);
KL_CU_SAME_LAYOUT(CUgraphEdgeData, cudaGraphEdgeData);
KL_CU_SAME_LAYOUT(CUDA_GRAPH_INSTANTIATE_PARAMS, cudaGraphInstantiateParams);
KL_CU_SAME_LAYOUT(CUgraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo);

/* ---- captures ---- */

SAME(cuStreamBeginCapture_v2, cudaStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode),
     (stream, (enum cudaStreamCaptureMode)mode))
SAME(cuStreamBeginCapture, cudaStreamBeginCapture, (CUstream stream), (stream, cudaStreamCaptureModeGlobal))
SAME(cuStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph,
     (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
      CUstreamCaptureMode mode),
     (stream, graph, after, (const void *)edges, count, (enum cudaStreamCaptureMode)mode))
SAME(cuStreamEndCapture, cudaStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))
SAME(cuStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo,
     (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **after,
      const CUgraphEdgeData **edges, size_t *count),
     (stream, (void *)status, (void *)id, graph, after, (void *)edges, count))
SAME(cuStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo,
     (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **after,
      size_t *count),
     (stream, (void *)status, (void *)id, graph, after, NULL, count))
SAME(cuStreamGetCaptureInfo, cudaStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
     (stream, (void *)status, (void *)id, NULL, NULL, NULL, NULL))

/* ---- graphs ---- */

SAME(cuGraphCreate, cudaGraphCreate, (CUgraph * graph, unsigned int flags), (graph, flags))
SAME(cuGraphDestroy, cudaGraphDestroy, (CUgraph graph), (graph))
SAME(cuGraphClone, cudaGraphClone, (CUgraph * clone, CUgraph graph), (clone, graph))
SAME(cuGraphDebugDotPrint, cudaGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned int flags),
     (graph, path, flags))
SAME(cuUserObjectCreate, cudaUserObjectCreate,
     (CUuserObject * object, void *ptr, CUhostFn destroy, unsigned int count, unsigned int flags),
     (object, ptr, destroy, count, flags))
SAME(cuUserObjectRetain, cudaUserObjectRetain, (CUuserObject object, unsigned int count), (object, count))
SAME(cuUserObjectRelease, cudaUserObjectRelease, (CUuserObject object, unsigned int count), (object, count))
SAME(cuGraphRetainUserObject, cudaGraphRetainUserObject,
     (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags), (graph, object, count, flags))
SAME(cuGraphReleaseUserObject, cudaGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned int count),
     (graph, object, count))

/* ---- nodes ---- */

SAME(cuGraphAddEmptyNode, cudaGraphAddEmptyNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count), (node, graph, after, count))
SAME(cuGraphAddHostNode, cudaGraphAddHostNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,
      const CUDA_HOST_NODE_PARAMS *parameters),
     (node, graph, after, count, (const void *)parameters))
SAME(cuGraphHostNodeGetParams, cudaGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters),
     (node, (void *)parameters))
SAME(cuGraphHostNodeSetParams, cudaGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters),
     (node, (const void *)parameters))
SAME(cuGraphAddMemsetNode, cudaGraphAddMemsetNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,
      const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context __attribute__((unused))),
     (node, graph, after, count, (const void *)parameters))
SAME(cuGraphMemsetNodeGetParams, cudaGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters),
     (node, (void *)parameters))
SAME(cuGraphMemsetNodeSetParams, cudaGraphMemsetNodeSetParams,
     (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters), (node, (const void *)parameters))
SAME(cuGraphAddChildGraphNode, cudaGraphAddChildGraphNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUgraph child),
     (node, graph, after, count, child))
SAME(cuGraphChildGraphNodeGetGraph, cudaGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph), (node, graph))
SAME(cuGraphAddEventRecordNode, cudaGraphAddEventRecordNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUevent event),
     (node, graph, after, count, event))
SAME(cuGraphEventRecordNodeGetEvent, cudaGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *event),
     (node, event))
SAME(cuGraphEventRecordNodeSetEvent, cudaGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event), (node, event))
SAME(cuGraphExecEventRecordNodeSetEvent, cudaGraphExecEventRecordNodeSetEvent,
     (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
SAME(cuGraphAddEventWaitNode, cudaGraphAddEventWaitNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUevent event),
     (node, graph, after, count, event))
SAME(cuGraphEventWaitNodeGetEvent, cudaGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *event), (node, event))
SAME(cuGraphEventWaitNodeSetEvent, cudaGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event), (node, event))
SAME(cuGraphExecEventWaitNodeSetEvent, cudaGraphExecEventWaitNodeSetEvent,
     (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
SAME(cuGraphAddMemAllocNode, cudaGraphAddMemAllocNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,
      CUDA_MEM_ALLOC_NODE_PARAMS *parameters),
     (node, graph, after, count, (void *)parameters))
SAME(cuGraphMemAllocNodeGetParams, cudaGraphMemAllocNodeGetParams,
     (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters), (node, (void *)parameters))
SAME(cuGraphAddMemFreeNode, cudaGraphAddMemFreeNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr ptr),
     (node, graph, after, count, kl_cu_address(ptr)))
SAME(cuGraphMemFreeNodeGetParams, cudaGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *ptr), (node, ptr))
SAME(cuGraphDestroyNode, cudaGraphDestroyNode, (CUgraphNode node), (node))
SAME(cuGraphNodeGetType, cudaGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), (node, (void *)type))
SAME(cuGraphNodeFindInClone, cudaGraphNodeFindInClone, (CUgraphNode * node, CUgraphNode original, CUgraph clone),
     (node, original, clone))
SAME(cuGraphGetNodes, cudaGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count), (graph, nodes, count))
SAME(cuGraphGetRootNodes, cudaGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
     (graph, nodes, count))

/* ---- edges ---- */

SAME(cuGraphGetEdges_v2, cudaGraphGetEdges,
     (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count),
     (graph, from, to, (void *)edges, count))
SAME(cuGraphGetEdges, cudaGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
     (graph, from, to, NULL, count))
SAME(cuGraphNodeGetDependencies_v2, cudaGraphNodeGetDependencies,
     (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count), (node, nodes, (void *)edges, count))
SAME(cuGraphNodeGetDependencies, cudaGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count),
     (node, nodes, NULL, count))
SAME(cuGraphNodeGetDependentNodes_v2, cudaGraphNodeGetDependentNodes,
     (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count), (node, nodes, (void *)edges, count))
SAME(cuGraphNodeGetDependentNodes, cudaGraphNodeGetDependentNodes,
     (CUgraphNode node, CUgraphNode *nodes, size_t *count), (node, nodes, NULL, count))
SAME(cuGraphAddDependencies_v2, cudaGraphAddDependencies,
     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count),
     (graph, from, to, (const void *)edges, count))
SAME(cuGraphAddDependencies, cudaGraphAddDependencies,
     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count), (graph, from, to, NULL, count))
SAME(cuGraphRemoveDependencies_v2, cudaGraphRemoveDependencies,
     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count),
     (graph, from, to, (const void *)edges, count))
SAME(cuGraphRemoveDependencies, cudaGraphRemoveDependencies,
     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count), (graph, from, to, NULL, count))

/* ---- executables ---- */

SAME(cuGraphInstantiateWithFlags, cudaGraphInstantiate, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
     (exec, graph, flags))
SAME(cuGraphInstantiateWithParams, cudaGraphInstantiateWithParams,
     (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters), (exec, graph, (void *)parameters))
SAME(cuGraphExecGetFlags, cudaGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *flags), (exec, (void *)flags))
SAME(cuGraphExecUpdate_v2, cudaGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result),
     (exec, graph, (void *)result))
SAME(cuGraphExecHostNodeSetParams, cudaGraphExecHostNodeSetParams,
     (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters),
     (exec, node, (const void *)parameters))
SAME(cuGraphExecMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams,
     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters,
      CUcontext context __attribute__((unused))),
     (exec, node, (const void *)parameters))
SAME(cuGraphExecChildGraphNodeSetParams, cudaGraphExecChildGraphNodeSetParams,
     (CUgraphExec exec, CUgraphNode node, CUgraph child), (exec, node, child))
SAME(cuGraphNodeSetEnabled, cudaGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int enabled),
     (exec, node, enabled))
SAME(cuGraphNodeGetEnabled, cudaGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int *enabled),
     (exec, node, enabled))
SAME(cuGraphUpload, cudaGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream))
SAME(cuGraphLaunch, cudaGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
SAME(cuGraphExecDestroy, cudaGraphExecDestroy, (CUgraphExec exec), (exec))
SAME(cuGraphInstantiate, cudaGraphInstantiate,
     (CUgraphExec * exec, CUgraph graph, CUgraphNode *failed __attribute__((unused)), char *log __attribute__((unused)),
      size_t log_bytes __attribute__((unused))),
     (exec, graph, 0))
SAME(cuGraphInstantiate_v2, cudaGraphInstantiate,
     (CUgraphExec * exec, CUgraph graph, CUgraphNode *failed __attribute__((unused)), char *log __attribute__((unused)),
      size_t log_bytes __attribute__((unused))),
     (exec, graph, 0))

/* ---- as CUDA 11 has it ---- */

__attribute__((visibility("default"))) CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failed,
                                                                  int *result);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failed, int *result)
{
    CUgraphExecUpdateResultInfo info = {0};
    CUresult rc = cuGraphExecUpdate_v2(exec, graph, &info);

    if (failed) *failed = info.errorNode;
    if (result) *result = (int)info.result;
    return rc;
}

/* ---- memory of graphs ---- */

SAME(cuDeviceGraphMemTrim, cudaDeviceGraphMemTrim, (CUdevice device), (device))
SAME(cuDeviceGetGraphMemAttribute, cudaDeviceGetGraphMemAttribute,
     (CUdevice device, CUgraphMem_attribute attribute, void *value),
     (device, (enum cudaGraphMemAttributeType)attribute, value))
SAME(cuDeviceSetGraphMemAttribute, cudaDeviceSetGraphMemAttribute,
     (CUdevice device, CUgraphMem_attribute attribute, void *value),
     (device, (enum cudaGraphMemAttributeType)attribute, value))
SAME(cuCtxResetPersistingL2Cache, cudaCtxResetPersistingL2Cache, (void), ())
