/* SPDX-License-Identifier: Apache-2.0 */
/** graph_node.c - nodes of kernels and copies, and of any kind: the runtime's, with the driver's parameters. */
#include "compat/cuda/driver/copies.h"
#include "compat/cuda/driver/same.h"

#include <string.h>

#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphAddNode

KL_CU_ALIKE(CUDA_KERNEL_NODE_PARAMS_v1, struct cudaKernelNodeParams);
KL_CU_ALIKE(CUgraphNodeParams, struct cudaGraphNodeParams);
KL_CU_ALIKE(CUlaunchAttributeValue, cudaLaunchAttributeValue);

/* ---- kernels ---- */

/* CUDA 12's parameters begin like CUDA 11's, which are the runtime's. */
static const struct cudaKernelNodeParams *of_kernel(struct cudaKernelNodeParams *to,
                                                    const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    if (!p) return NULL;
    memcpy(to, p, sizeof *to);
    if (!to->func) to->func = p->kern;
    return to;
}

static cudaError_t get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    struct cudaKernelNodeParams p;
    cudaError_t rc = out ? cudaGraphKernelNodeGetParams(node, &p) : cudaErrorInvalidValue;

    if (rc) return rc;
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){0};
    memcpy(out, &p, sizeof p);
    return cudaSuccess;
}

SAME(cuGraphAddKernelNode_v2, cudaGraphAddKernelNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *p),
     (node, graph, after, count, of_kernel(&(struct cudaKernelNodeParams){0}, p)))
SAME(cuGraphAddKernelNode, cudaGraphAddKernelNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
     (node, graph, after, count, (const void *)p))
SAME(cuGraphKernelNodeGetParams_v2, get_kernel, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *p), (node, p))
SAME(cuGraphKernelNodeGetParams, cudaGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p),
     (node, (void *)p))
SAME(cuGraphKernelNodeSetParams_v2, cudaGraphKernelNodeSetParams,
     (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p), (node, of_kernel(&(struct cudaKernelNodeParams){0}, p)))
SAME(cuGraphKernelNodeSetParams, cudaGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
     (node, (const void *)p))
SAME(cuGraphExecKernelNodeSetParams_v2, cudaGraphExecKernelNodeSetParams,
     (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p),
     (exec, node, of_kernel(&(struct cudaKernelNodeParams){0}, p)))
SAME(cuGraphExecKernelNodeSetParams, cudaGraphExecKernelNodeSetParams,
     (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p), (exec, node, (const void *)p))
SAME(cuGraphKernelNodeGetAttribute, cudaGraphKernelNodeGetAttribute,
     (CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue *value),
     (node, (cudaLaunchAttributeID)attribute, (void *)value))
SAME(cuGraphKernelNodeSetAttribute, cudaGraphKernelNodeSetAttribute,
     (CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value),
     (node, (cudaLaunchAttributeID)attribute, (const void *)value))
SAME(cuGraphKernelNodeCopyAttributes, cudaGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), (to, from))

/* ---- copies ---- */

static cudaError_t add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                            const CUDA_MEMCPY3D *copy)
{
    struct cudaMemcpy3DParms p;

    KL_CUDA_TRY((cudaError_t)kl_cu_copy_to_runtime(&p, copy));
    return cudaGraphAddMemcpyNode(node, graph, after, count, &p);
}

static cudaError_t get_copy(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
    struct cudaMemcpy3DParms p;
    cudaError_t rc = copy ? cudaGraphMemcpyNodeGetParams(node, &p) : cudaErrorInvalidValue;

    if (!rc) kl_cu_copy_of_runtime(copy, &p);
    return rc;
}

/* Both functions that change a kind of parameters: in the graph, and in an executable. */
#define SET(name, exec_name, function, exec_function, type, runtime_type, convert)                                     \
    static cudaError_t name(CUgraphNode node, const type *parameters)                                                  \
    {                                                                                                                  \
        runtime_type p;                                                                                                \
                                                                                                                       \
        KL_CUDA_TRY((cudaError_t)convert(&p, parameters));                                                             \
        return function(node, &p);                                                                                     \
    }                                                                                                                  \
    static cudaError_t exec_name(CUgraphExec exec, CUgraphNode node, const type *parameters)                           \
    {                                                                                                                  \
        runtime_type p;                                                                                                \
                                                                                                                       \
        KL_CUDA_TRY((cudaError_t)convert(&p, parameters));                                                             \
        return exec_function(exec, node, &p);                                                                          \
    }

SET(set_copy, set_copy_in, cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams, CUDA_MEMCPY3D,
    struct cudaMemcpy3DParms, kl_cu_copy_to_runtime)

SAME(cuGraphAddMemcpyNode, add_copy,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_MEMCPY3D *copy,
      CUcontext context __attribute__((unused))),
     (node, graph, after, count, copy))
SAME(cuGraphMemcpyNodeGetParams, get_copy, (CUgraphNode node, CUDA_MEMCPY3D *copy), (node, copy))
SAME(cuGraphMemcpyNodeSetParams, set_copy, (CUgraphNode node, const CUDA_MEMCPY3D *copy), (node, copy))
SAME(cuGraphExecMemcpyNodeSetParams, set_copy_in,
     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context __attribute__((unused))),
     (exec, node, copy))

/* ---- any kind ---- */

/* All kinds but two have the runtime's parameters, with at most a context behind them. */
static CUresult of_any(struct cudaGraphNodeParams *to, const CUgraphNodeParams *p)
{
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, p, sizeof *to);
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL && !to->kernel.func) to->kernel.func = p->kernel.kern;
    return p->type == CU_GRAPH_NODE_TYPE_MEMCPY ? kl_cu_copy_to_runtime(&to->memcpy.copyParams, &p->memcpy.copyParams)
                                                : CUDA_SUCCESS;
}

static cudaError_t add_any(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                           size_t count, CUgraphNodeParams *parameters)
{
    struct cudaGraphNodeParams p;

    KL_CUDA_TRY((cudaError_t)of_any(&p, parameters));
    cudaError_t rc = cudaGraphAddNode(node, graph, after, (const void *)edges, count, &p);
    if (!rc && p.type == cudaGraphNodeTypeMemAlloc) parameters->alloc.dptr = (CUdeviceptr)(uintptr_t)p.alloc.dptr;
    if (!rc && p.type == cudaGraphNodeTypeConditional) parameters->conditional.phGraph_out = p.conditional.phGraph_out;
    return rc;
}

static cudaError_t create_condition(CUgraphConditionalHandle *handle, CUgraph graph, unsigned initial, unsigned flags)
{
    cudaGraphConditionalHandle made;
    cudaError_t rc = cudaGraphConditionalHandleCreate(handle ? &made : NULL, graph, initial, flags);

    if (!rc) *handle = made;
    return rc;
}

SET(set_any, set_any_in, cudaGraphNodeSetParams, cudaGraphExecNodeSetParams, CUgraphNodeParams,
    struct cudaGraphNodeParams, of_any)

SAME(cuGraphAddNode_v2, add_any,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
      CUgraphNodeParams *parameters),
     (node, graph, after, edges, count, parameters))
SAME(cuGraphAddNode, add_any,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNodeParams *parameters),
     (node, graph, after, NULL, count, parameters))
SAME(cuGraphNodeSetParams, set_any, (CUgraphNode node, CUgraphNodeParams *parameters), (node, parameters))
SAME(cuGraphExecNodeSetParams, set_any_in, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters),
     (exec, node, parameters))
SAME(cuGraphConditionalHandleCreate, create_condition,
     (CUgraphConditionalHandle * handle, CUgraph graph, CUcontext context __attribute__((unused)), unsigned initial,
      unsigned flags),
     (handle, graph, initial, flags))
