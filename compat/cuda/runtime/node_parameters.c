/* SPDX-License-Identifier: Apache-2.0 */
/** node_parameters.c - query and change nodes' parameters: in their graph, or in an executable. Captured nodes are unknown: 801. */
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/executable.h"
#include "compat/cuda/runtime/graph.h"

#include <string.h>

/* ---- asked ---- */

/* A node of this type that was made by hand. */
static cudaError_t find(cudaGraphNode_t node, enum cudaGraphNodeType type, struct kl_cudart_work **work)
{
    struct kl_cudart_node *n = kl_cudart_node(node);

    if (n && n->captured) return cudaErrorNotSupported;
    if (!n || n->work.type != type) return cudaErrorInvalidValue;
    *work = &n->work;
    return cudaSuccess;
}

#define GET(name, kind, parameters, field)                                                                             \
    cudaError_t name(cudaGraphNode_t node, struct parameters *out)                                                     \
    {                                                                                                                  \
        struct kl_cudart_work *w;                                                                                      \
        cudaError_t rc = out ? find(node, kind, &w) : cudaErrorInvalidValue;                                           \
                                                                                                                       \
        if (!rc) *out = w->field;                                                                                      \
        return kl_cudart_done(rc);                                                                                     \
    }                                                                                                                  \
    KL_CUDART_ENTRY(name)

GET(cudaGraphKernelNodeGetParams, cudaGraphNodeTypeKernel, cudaKernelNodeParams, kernel);
GET(cudaGraphMemcpyNodeGetParams, cudaGraphNodeTypeMemcpy, cudaMemcpy3DParms, copy);
GET(cudaGraphMemsetNodeGetParams, cudaGraphNodeTypeMemset, cudaMemsetParams, fill);
GET(cudaGraphHostNodeGetParams, cudaGraphNodeTypeHost, cudaHostNodeParams, host);

/* ---- changed ---- */

static void keep_attributes(struct kl_cudart_work *to, const struct kl_cudart_work *from)
{
    to->cooperative = from->cooperative;
    to->cluster = from->cluster;
    to->priority = from->priority;
}

/* The work takes the place of the node's. Either is dropped in the end. */
static cudaError_t set(cudaError_t rc, cudaGraphNode_t node, struct kl_cudart_work *work)
{
    if (rc) return kl_cudart_done(rc);
    struct kl_cudart_work *w, old = *work;
    rc = find(node, work->type, &w);
    if (!rc) {
        old = *w;
        keep_attributes(work, &old);
        *w = *work;
    }
    kl_cudart_work_end(&old);
    return kl_cudart_done(rc);
}

static cudaError_t exchange(cudaGraphExec_t exec, cudaGraphNode_t node, struct kl_cudart_work *work)
{
    struct kl_cudart_node *n;

    KL_CUDA_TRY(kl_cudart_exec_node(exec, node, &n));
    if (n->work.type != work->type) return cudaErrorInvalidValue;
    struct kl_cudart_work old = n->work;
    keep_attributes(work, &old);
    n->work = *work;
    cudaError_t rc = kl_cudart_exec_changed(exec, n);
    if (rc)
        n->work = old;
    else
        *work = old; /* to be dropped */
    return rc;
}

/* The same in an executable; its graph stays. */
static cudaError_t set_in(cudaError_t rc, cudaGraphExec_t exec, cudaGraphNode_t node, struct kl_cudart_work *work)
{
    if (rc) return kl_cudart_done(rc);
    rc = exchange(exec, node, work);
    kl_cudart_work_end(work);
    return kl_cudart_done(rc);
}

/* Both functions of a kind of parameters: in the graph, and in an executable. */
#define SET(name, exec_name, parameters, fill_in)                                                                      \
    cudaError_t name(cudaGraphNode_t node, parameters *p)                                                              \
    {                                                                                                                  \
        struct kl_cudart_work w;                                                                                       \
                                                                                                                       \
        return set(fill_in(&w, p), node, &w);                                                                          \
    }                                                                                                                  \
    KL_CUDART_ENTRY(name);                                                                                             \
    cudaError_t exec_name(cudaGraphExec_t exec, cudaGraphNode_t node, parameters *p)                                   \
    {                                                                                                                  \
        struct kl_cudart_work w;                                                                                       \
                                                                                                                       \
        return set_in(fill_in(&w, p), exec, node, &w);                                                                 \
    }                                                                                                                  \
    KL_CUDART_ENTRY(exec_name)

SET(cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams, const struct cudaKernelNodeParams,
    kl_cudart_work_kernel);
SET(cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams, const struct cudaMemcpy3DParms,
    kl_cudart_work_copy);
SET(cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams, const struct cudaMemsetParams, kl_cudart_work_fill);
SET(cudaGraphHostNodeSetParams, cudaGraphExecHostNodeSetParams, const struct cudaHostNodeParams, kl_cudart_work_host);
SET(cudaGraphNodeSetParams, cudaGraphExecNodeSetParams, struct cudaGraphNodeParams, kl_cudart_work_any);

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child)
{
    struct kl_cudart_work w;

    return set_in(kl_cudart_work_child(&w, child), exec, node, &w);
}
KL_CUDART_ENTRY(cudaGraphExecChildGraphNodeSetParams);

/* ---- events ---- */

#define EVENT(get, set_name, exec_name, kind)                                                                          \
    cudaError_t get(cudaGraphNode_t node, cudaEvent_t *out)                                                            \
    {                                                                                                                  \
        struct kl_cudart_work *w;                                                                                      \
        cudaError_t rc = out ? find(node, kind, &w) : cudaErrorInvalidValue;                                           \
                                                                                                                       \
        if (!rc) *out = w->event;                                                                                      \
        return kl_cudart_done(rc);                                                                                     \
    }                                                                                                                  \
    KL_CUDART_ENTRY(get);                                                                                              \
    cudaError_t set_name(cudaGraphNode_t node, cudaEvent_t event)                                                      \
    {                                                                                                                  \
        struct kl_cudart_work w;                                                                                       \
                                                                                                                       \
        return set(kl_cudart_work_event(&w, kind, event), node, &w);                                                   \
    }                                                                                                                  \
    KL_CUDART_ENTRY(set_name);                                                                                         \
    cudaError_t exec_name(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)                               \
    {                                                                                                                  \
        struct kl_cudart_work w;                                                                                       \
                                                                                                                       \
        return set_in(kl_cudart_work_event(&w, kind, event), exec, node, &w);                                          \
    }                                                                                                                  \
    KL_CUDART_ENTRY(exec_name)

EVENT(cudaGraphEventRecordNodeGetEvent, cudaGraphEventRecordNodeSetEvent, cudaGraphExecEventRecordNodeSetEvent,
      cudaGraphNodeTypeEventRecord);
EVENT(cudaGraphEventWaitNodeGetEvent, cudaGraphEventWaitNodeSetEvent, cudaGraphExecEventWaitNodeSetEvent,
      cudaGraphNodeTypeWaitEvent);

/* ---- rows, also of variables ---- */

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set(kl_cudart_work_row(&w, to, from, bytes, kind), node, &w);
}
KL_CUDART_ENTRY(cudaGraphMemcpyNodeSetParams1D);

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set_in(kl_cudart_work_row(&w, to, from, bytes, kind), exec, node, &w);
}
KL_CUDART_ENTRY(cudaGraphExecMemcpyNodeSetParams1D);

static cudaError_t to_symbol(struct kl_cudart_work *w, const void *symbol, const void *from, size_t bytes,
                             size_t offset, enum cudaMemcpyKind kind)
{
    char *to;

    KL_CUDA_TRY(kl_cudart_symbol_part(symbol, offset, bytes, &to));
    return kl_cudart_work_row(w, to, from, bytes, kind);
}

static cudaError_t from_symbol(struct kl_cudart_work *w, void *to, const void *symbol, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    char *from;

    KL_CUDA_TRY(kl_cudart_symbol_part(symbol, offset, bytes, &from));
    return kl_cudart_work_row(w, to, from, bytes, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set(to_symbol(&w, symbol, from, bytes, offset, kind), node, &w);
}
KL_CUDART_ENTRY(cudaGraphMemcpyNodeSetParamsToSymbol);

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                     const void *from, size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set_in(to_symbol(&w, symbol, from, bytes, offset, kind), exec, node, &w);
}
KL_CUDART_ENTRY(cudaGraphExecMemcpyNodeSetParamsToSymbol);

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t bytes,
                                                   size_t offset, enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set(from_symbol(&w, to, symbol, bytes, offset, kind), node, &w);
}
KL_CUDART_ENTRY(cudaGraphMemcpyNodeSetParamsFromSymbol);

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t bytes, size_t offset,
                                                       enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return set_in(from_symbol(&w, to, symbol, bytes, offset, kind), exec, node, &w);
}
KL_CUDART_ENTRY(cudaGraphExecMemcpyNodeSetParamsFromSymbol);

/* ---- attributes of kernels ---- */

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value)
{
    struct kl_cudart_work *w;
    cudaError_t rc = value ? find(node, cudaGraphNodeTypeKernel, &w) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    memset(value, 0, sizeof *value);
    if (attribute == cudaLaunchAttributeCooperative) value->cooperative = w->cooperative;
    if (attribute == cudaLaunchAttributePriority) value->priority = w->priority;
    if (attribute == cudaLaunchAttributeClusterDimension) {
        value->clusterDim.x = w->cluster.x;
        value->clusterDim.y = w->cluster.y;
        value->clusterDim.z = w->cluster.z;
    }
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphKernelNodeGetAttribute);

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value)
{
    struct kl_cudart_work *w;
    cudaError_t rc = value ? find(node, cudaGraphNodeTypeKernel, &w) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    if (attribute == cudaLaunchAttributeClusterDimension)
        w->cluster = (dim3){value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    if (attribute == cudaLaunchAttributeCooperative) w->cooperative = value->cooperative;
    if (attribute == cudaLaunchAttributePriority) w->priority = value->priority;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphKernelNodeSetAttribute);

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
    struct kl_cudart_work *a, *b;
    cudaError_t rc = find(from, cudaGraphNodeTypeKernel, &a);

    if (!rc) rc = find(to, cudaGraphNodeTypeKernel, &b);
    if (!rc) keep_attributes(b, a);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY_13(cudaGraphKernelNodeCopyAttributes);

static cudaError_t copy_attributes_12(cudaGraphNode_t from, cudaGraphNode_t to)
{
    return cudaGraphKernelNodeCopyAttributes(to, from);
}
KL_CUDART_ENTRY_12(cudaGraphKernelNodeCopyAttributes, copy_attributes_12);

/* ---- left out ---- */

/* Kernels, copies and fills may be left out. */
static cudaError_t find_optional(cudaGraphExec_t exec, cudaGraphNode_t node, struct kl_cudart_node **n)
{
    KL_CUDA_TRY(kl_cudart_exec_node(exec, node, n));
    return (*n)->work.type <= cudaGraphNodeTypeMemset ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled)
{
    struct kl_cudart_node *n;
    cudaError_t rc = find_optional(exec, node, &n);

    if (rc) return kl_cudart_done(rc);
    bool before = n->disabled;
    n->disabled = !enabled;
    if (n->disabled != before) rc = kl_cudart_exec_changed(exec, n);
    if (rc) n->disabled = before;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphNodeSetEnabled);

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled)
{
    struct kl_cudart_node *n;
    cudaError_t rc = enabled ? find_optional(exec, node, &n) : cudaErrorInvalidValue;

    if (!rc) *enabled = !n->disabled;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphNodeGetEnabled);
