/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory_node.c - nodes that allocate and free. The memory is there as long as the graph, and all that was made of it: so its address is known
 * at once, and a free only has to be of such memory.
 */
#include "compat/cuda/core/pool.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/node.h"

#include <stdlib.h>
#include <string.h>

/* ---- allocations ---- */

static cudaError_t check_parameters(const struct cudaMemAllocNodeParams *p)
{
    if (!p || p->poolProps.allocType != cudaMemAllocationTypePinned || !p->bytesize ||
        p->poolProps.location.type != cudaMemLocationTypeDevice || (p->accessDescCount && !p->accessDescs))
        return cudaErrorInvalidValue;
    if (p->poolProps.handleTypes) return cudaErrorInvalidValue;
    for (size_t i = 0; i < p->accessDescCount; i++)
        KL_CUDA_TRY(kl_cuda_pool_check_access(p->poolProps.location.id, &p->accessDescs[i]));
    return cudaSuccess;
}

/* The graph keeps a copy of the access list. */
static cudaError_t copy_access(struct kl_cudart_graph *g, struct cudaMemAllocNodeParams *p)
{
    const size_t bytes = p->accessDescCount * sizeof *p->accessDescs;
    void *copy = bytes ? malloc(bytes) : NULL;

    if (bytes && !copy) return cudaErrorMemoryAllocation;
    if (bytes) memcpy(copy, p->accessDescs, bytes);
    p->accessDescs = copy;
    if (!copy || kl_cudart_kept_own(&g->kept, copy, free)) return cudaSuccess;
    free(copy);
    return cudaErrorMemoryAllocation;
}

static cudaError_t allocate(struct kl_cudart_graph *g, struct cudaMemAllocNodeParams *p)
{
    void *block;

    KL_CUDA_TRY(copy_access(g, p));
    KL_CUDA_TRY(kl_cuda_pool_alloc_for_graph(p->poolProps.location.id, p->bytesize, &p->dptr, &block));
    if (kl_cudart_kept_own(&g->kept, block, kl_cuda_pool_end_of_graph)) return cudaSuccess;
    kl_cuda_pool_end_of_graph(block);
    return cudaErrorMemoryAllocation;
}

cudaError_t kl_cudart_node_add_alloc(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, struct cudaMemAllocNodeParams *p)
{
    struct kl_cudart_work w = {.type = cudaGraphNodeTypeMemAlloc};
    struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!g) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(check_parameters(p));
    w.alloc = *p;
    KL_CUDA_TRY(kl_cudart_node_check(g, after, count));
    KL_CUDA_TRY(allocate(g, &w.alloc));
    KL_CUDA_TRY(kl_cudart_node_add(node, graph, after, count, &w));
    p->dptr = w.alloc.dptr;
    return cudaSuccess;
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, struct cudaMemAllocNodeParams *p)
{
    return kl_cudart_done(kl_cudart_node_add_alloc(node, graph, after, count, p));
}
KL_CUDART_ENTRY(cudaGraphAddMemAllocNode);

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *out)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);

    if (!n || !out || n->work.type != cudaGraphNodeTypeMemAlloc) return kl_cudart_done(cudaErrorInvalidValue);
    *out = n->work.alloc;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphMemAllocNodeGetParams);

/* ---- frees ---- */

static bool frees(const struct kl_cudart_graph *g, const void *ptr)
{
    for (size_t i = 0; i < g->nnodes; i++)
        if (g->node[i]->work.type == cudaGraphNodeTypeMemFree && g->node[i]->work.freed == ptr) return true;
    return false;
}

cudaError_t kl_cudart_node_add_free(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *ptr)
{
    const struct kl_cudart_work w = {.type = cudaGraphNodeTypeMemFree, .freed = ptr};
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!g || !ptr || !kl_cuda_pool_is_graphs(ptr) || frees(g, ptr)) return cudaErrorInvalidValue;
    return kl_cudart_node_add(node, graph, after, count, &w);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *ptr)
{
    return kl_cudart_done(kl_cudart_node_add_free(node, graph, after, count, ptr));
}
KL_CUDART_ENTRY(cudaGraphAddMemFreeNode);

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);

    if (!n || !out || n->work.type != cudaGraphNodeTypeMemFree) return kl_cudart_done(cudaErrorInvalidValue);
    memcpy(out, &n->work.freed, sizeof n->work.freed);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphMemFreeNodeGetParams);
