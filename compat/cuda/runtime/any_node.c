/* SPDX-License-Identifier: Apache-2.0 */
/** any_node.c - nodes of all kinds, by their parameters. */
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/node.h"

#include <stdlib.h>

static bool contains(const struct kl_cudart_graph *g, const struct kl_cudart_graph *other)
{
    if (g == other) return true;
    for (size_t i = 0; i < g->nnodes; i++)
        for (size_t k = 0; k < g->node[i]->work.ninner; k++)
            if (contains(g->node[i]->work.inner[k], other)) return true;
    return false;
}

/* The child itself becomes the node's; on failure it stays the program's. */
static cudaError_t add_moved(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                             cudaGraph_t child)
{
    struct kl_cudart_work w = {.type = cudaGraphNodeTypeGraph};
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    struct kl_cudart_graph *c = kl_cudart_graph(child);

    if (!g || !c || c->part || contains(c, g)) return cudaErrorInvalidValue;
    if (!kl_cudart_work_take(&w, c)) return cudaErrorMemoryAllocation;
    cudaError_t rc = kl_cudart_node_add(node, graph, after, count, &w);
    c->part = c->moved = !rc;
    if (rc) free(w.inner);
    return rc;
}

/* Kinds with more parameters than work. False: it is another one. */
static bool add_special(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                        struct cudaGraphNodeParams *p, cudaError_t *rc)
{
    if (p->type == cudaGraphNodeTypeMemAlloc)
        *rc = kl_cudart_node_add_alloc(node, graph, after, count, &p->alloc);
    else if (p->type == cudaGraphNodeTypeMemFree)
        *rc = kl_cudart_node_add_free(node, graph, after, count, p->free.dptr);
    else if (p->type == cudaGraphNodeTypeConditional)
        *rc = kl_cudart_node_add_condition(node, graph, after, count, &p->conditional);
    else if (p->type == cudaGraphNodeTypeGraph && p->graph.ownership == cudaGraphChildGraphOwnershipMove)
        *rc = add_moved(node, graph, after, count, p->graph.graph);
    else
        return false;
    return true;
}

/* Further data of edges is for overlapping kernels: these do not overlap. */
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters)
{
    struct kl_cudart_work w;
    cudaError_t rc;

    (void)edges;
    if (parameters && add_special(node, graph, after, count, parameters, &rc)) return kl_cudart_done(rc);
    rc = kl_cudart_work_any(&w, parameters);
    if (rc) return kl_cudart_done(rc);
    rc = kl_cudart_node_add(node, graph, after, count, &w);
    if (rc) kl_cudart_work_end(&w);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY_13(cudaGraphAddNode);
KL_CUDART_ENTRY_12(cudaGraphAddNode_v2, cudaGraphAddNode);

static cudaError_t add_node_12(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                               struct cudaGraphNodeParams *parameters)
{
    return cudaGraphAddNode(node, graph, after, NULL, count, parameters);
}
KL_CUDART_ENTRY_12(cudaGraphAddNode, add_node_12);
