/* SPDX-License-Identifier: Apache-2.0 */
/** node.c - nodes of graphs, and how programs make them by hand. */
#include "compat/cuda/runtime/node.h"

#include "compat/cuda/core/handle.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/graph.h"

#include <stdlib.h>

/* ---- life ---- */

struct kl_cudart_node *kl_cudart_node(cudaGraphNode_t node)
{
    return kl_cuda_handle_find(KL_CUDA_NODE, node);
}

struct kl_cudart_node *kl_cudart_node_make(struct kl_cudart_graph *g)
{
    struct kl_cudart_node *n = calloc(1, sizeof *n);
    struct kl_cudart_node **grown = n ? realloc(g->node, (g->nnodes + 1) * sizeof(struct kl_cudart_node *)) : NULL;

    if (grown) g->node = grown;
    if (grown) n->handle = kl_cuda_handle_make(KL_CUDA_NODE, n);
    if (!n || !n->handle) {
        free(n);
        return NULL;
    }
    n->graph = g;
    n->number = g->nnodes;
    g->node[g->nnodes++] = n;
    return n;
}

void kl_cudart_node_free(struct kl_cudart_node *n)
{
    kl_cuda_handle_take(KL_CUDA_NODE, n->handle);
    kl_cudart_work_end(&n->work);
    free(n->after);
    free(n);
}

bool kl_cudart_node_wait(struct kl_cudart_node *n, struct kl_cudart_node *after)
{
    struct kl_cudart_node **grown = realloc(n->after, (n->nafter + 1) * sizeof(struct kl_cudart_node *));

    if (!grown) return false;
    n->after = grown;
    n->after[n->nafter++] = after;
    return true;
}

/* ---- made by hand ---- */

cudaError_t kl_cudart_node_check(const struct kl_cudart_graph *g, const cudaGraphNode_t *after, size_t count)
{
    if (!g || (count && !after)) return cudaErrorInvalidValue;
    if (g->captured) return cudaErrorNotSupported;
    for (size_t i = 0; i < count; i++) {
        const struct kl_cudart_node *n = kl_cudart_node(after[i]);
        if (!n || n->graph != g) return cudaErrorInvalidValue;
        for (size_t k = 0; k < i; k++)
            if (after[k] == after[i]) return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t kl_cudart_node_add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                               const struct kl_cudart_work *work)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!out) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cudart_node_check(g, after, count));
    struct kl_cudart_node *n = kl_cudart_node_make(g);
    if (!n) return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < count; i++) {
        if (kl_cudart_node_wait(n, kl_cudart_node(after[i]))) continue;
        g->nnodes--;
        kl_cudart_node_free(n);
        return cudaErrorMemoryAllocation;
    }
    n->work = *work;
    *out = n->handle;
    return cudaSuccess;
}

/* The work, if it could be filled in, becomes a node of the graph, or is dropped. */
static cudaError_t finish(cudaError_t rc, cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after,
                          size_t count, struct kl_cudart_work *work)
{
    if (rc) return kl_cudart_done(rc);
    rc = kl_cudart_node_add(out, graph, after, count, work);
    if (rc) kl_cudart_work_end(work);
    return kl_cudart_done(rc);
}

/* A function for a kind of parameters. */
#define ADD(name, parameters, fill_in)                                                                                 \
    cudaError_t name(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,             \
                     const struct parameters *p)                                                                       \
    {                                                                                                                  \
        struct kl_cudart_work w;                                                                                       \
                                                                                                                       \
        return finish(fill_in(&w, p), node, graph, after, count, &w);                                                  \
    }                                                                                                                  \
    KL_CUDART_ENTRY(name)

ADD(cudaGraphAddKernelNode, cudaKernelNodeParams, kl_cudart_work_kernel);
ADD(cudaGraphAddMemcpyNode, cudaMemcpy3DParms, kl_cudart_work_copy);
ADD(cudaGraphAddMemsetNode, cudaMemsetParams, kl_cudart_work_fill);
ADD(cudaGraphAddHostNode, cudaHostNodeParams, kl_cudart_work_host);

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;

    return finish(kl_cudart_work_row(&w, to, from, bytes, kind), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddMemcpyNode1D);

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                           size_t count, const void *symbol, const void *from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;
    char *to;
    cudaError_t rc = kl_cudart_symbol_part(symbol, offset, bytes, &to);

    return finish(rc ? rc : kl_cudart_work_row(&w, to, from, bytes, kind), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddMemcpyNodeToSymbol);

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                             size_t count, void *to, const void *symbol, size_t bytes, size_t offset,
                                             enum cudaMemcpyKind kind)
{
    struct kl_cudart_work w;
    char *from;
    cudaError_t rc = kl_cudart_symbol_part(symbol, offset, bytes, &from);

    return finish(rc ? rc : kl_cudart_work_row(&w, to, from, bytes, kind), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddMemcpyNodeFromSymbol);

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count)
{
    struct kl_cudart_work w = {.type = cudaGraphNodeTypeEmpty};

    return finish(cudaSuccess, node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddEmptyNode);

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                        size_t count, cudaEvent_t event)
{
    struct kl_cudart_work w;

    return finish(kl_cudart_work_event(&w, cudaGraphNodeTypeEventRecord, event), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddEventRecordNode);

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                      size_t count, cudaEvent_t event)
{
    struct kl_cudart_work w;

    return finish(kl_cudart_work_event(&w, cudaGraphNodeTypeWaitEvent, event), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddEventWaitNode);

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child)
{
    struct kl_cudart_work w;

    if (child == graph) return kl_cudart_done(cudaErrorInvalidValue);
    return finish(kl_cudart_work_child(&w, child), node, graph, after, count, &w);
}
KL_CUDART_ENTRY(cudaGraphAddChildGraphNode);

/* ---- looked at ---- */

cudaError_t kl_cudart_graph_name_captured(struct kl_cudart_graph *g)
{
    size_t count;

    if (!g->captured) return cudaSuccess;
    KL_CUDA_TRY(kl_cuda_from_kolo(koloGraphGetNodeCount(g->captured->own, &count), cudaErrorInvalidValue));
    while (g->nnodes < count) {
        struct kl_cudart_node *n = kl_cudart_node_make(g);

        if (!n) return cudaErrorMemoryAllocation;
        n->captured = true;
        n->work.type = cudaGraphNodeTypeKernel;
    }
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);

    if (!n || !type) return kl_cudart_done(cudaErrorInvalidValue);
    if (n->captured) return kl_cudart_done(cudaErrorNotSupported);
    *type = n->work.type;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphNodeGetType);

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);

    if (!n || n->work.type != cudaGraphNodeTypeGraph || !graph) return kl_cudart_done(cudaErrorInvalidValue);
    if (!kl_cudart_graph_publish(n->work.inner[0])) return kl_cudart_done(cudaErrorMemoryAllocation);
    *graph = n->work.inner[0]->handle;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphChildGraphNodeGetGraph);

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(clone);

    for (size_t i = 0; g && node && original && i < g->nnodes; i++) {
        if (g->node[i]->of != original) continue;
        *node = g->node[i]->handle;
        return cudaSuccess;
    }
    return kl_cudart_done(cudaErrorInvalidValue);
}
KL_CUDART_ENTRY(cudaGraphNodeFindInClone);
