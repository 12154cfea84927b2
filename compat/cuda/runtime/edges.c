/* SPDX-License-Identifier: Apache-2.0 */
/** edges.c - which nodes a graph has, and which of them wait for which. Edges have no data here: nodes run one after the other. */
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/graph.h"

#include <string.h>

/* ---- lists that programs ask for: with room for some, and NULL where there are fewer; or without, to learn how many ---- */

struct list {
    cudaGraphNode_t *node, *second; /* NULL: not wanted */
    size_t room, n;
};

static void put(struct list *l, const struct kl_cudart_node *node, const struct kl_cudart_node *second)
{
    if (l->node && l->n < l->room) l->node[l->n] = node->handle;
    if (l->second && l->n < l->room) l->second[l->n] = second->handle;
    l->n++;
}

static cudaError_t finish(struct list *l, cudaGraphEdgeData *edges, size_t *count)
{
    if (!l->node && !l->second) l->room = 0;
    for (size_t i = l->n; i < l->room; i++) {
        if (l->node) l->node[i] = NULL;
        if (l->second) l->second[i] = NULL;
    }
    size_t filled = l->n < l->room ? l->n : l->room;
    if (edges) memset(edges, 0, filled * sizeof *edges);
    *count = l->room ? filled : l->n;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaError_t rc = g && count ? kl_cudart_graph_name_captured(g) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    struct list l = {.node = nodes, .room = *count};
    for (size_t i = 0; i < g->nnodes; i++) put(&l, g->node[i], NULL);
    return finish(&l, NULL, count);
}
KL_CUDART_ENTRY(cudaGraphGetNodes);

/* The edges of captured graphs are not known. */
static cudaError_t known(const struct kl_cudart_graph *g, const size_t *count)
{
    if (!g || !count) return cudaErrorInvalidValue;
    return g->captured ? cudaErrorNotSupported : cudaSuccess;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaError_t rc = known(g, count);

    if (rc) return kl_cudart_done(rc);
    struct list l = {.node = nodes, .room = *count};
    for (size_t i = 0; i < g->nnodes; i++)
        if (!g->node[i]->nafter) put(&l, g->node[i], NULL);
    return finish(&l, NULL, count);
}
KL_CUDART_ENTRY(cudaGraphGetRootNodes);

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaError_t rc = known(g, count);

    if (rc || !from != !to) return kl_cudart_done(rc ? rc : cudaErrorInvalidValue);
    struct list l = {.node = from, .second = to, .room = *count};
    for (size_t i = 0; i < g->nnodes; i++)
        for (size_t k = 0; k < g->node[i]->nafter; k++) put(&l, g->node[i]->after[k], g->node[i]);
    return finish(&l, edges, count);
}
KL_CUDART_ENTRY_13(cudaGraphGetEdges);
KL_CUDART_ENTRY_12(cudaGraphGetEdges_v2, cudaGraphGetEdges);

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *after, cudaGraphEdgeData *edges,
                                         size_t *count)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);
    cudaError_t rc = known(n ? n->graph : NULL, count);

    if (rc) return kl_cudart_done(rc);
    struct list l = {.node = after, .room = *count};
    for (size_t i = 0; i < n->nafter; i++) put(&l, n->after[i], NULL);
    return finish(&l, edges, count);
}
KL_CUDART_ENTRY_13(cudaGraphNodeGetDependencies);
KL_CUDART_ENTRY_12(cudaGraphNodeGetDependencies_v2, cudaGraphNodeGetDependencies);

/* The number of n's dependency on another node; n->nafter: it has none. */
static size_t find(const struct kl_cudart_node *n, const struct kl_cudart_node *after)
{
    size_t i = 0;

    while (i < n->nafter && n->after[i] != after) i++;
    return i;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *before, cudaGraphEdgeData *edges,
                                           size_t *count)
{
    const struct kl_cudart_node *n = kl_cudart_node(node);
    cudaError_t rc = known(n ? n->graph : NULL, count);

    if (rc) return kl_cudart_done(rc);
    struct list l = {.node = before, .room = *count};
    for (size_t i = 0; i < n->graph->nnodes; i++) {
        const struct kl_cudart_node *other = n->graph->node[i];
        if (find(other, n) < other->nafter) put(&l, other, NULL);
    }
    return finish(&l, edges, count);
}
KL_CUDART_ENTRY_13(cudaGraphNodeGetDependentNodes);
KL_CUDART_ENTRY_12(cudaGraphNodeGetDependentNodes_v2, cudaGraphNodeGetDependentNodes);

/* ---- changed ---- */

/* Both ends of edge i, and whether it is there. */
static cudaError_t ends(const struct kl_cudart_graph *g, cudaGraphNode_t from, cudaGraphNode_t to, bool there)
{
    const struct kl_cudart_node *a = kl_cudart_node(from), *b = kl_cudart_node(to);

    if (!a || !b || a == b || a->graph != g || b->graph != g) return cudaErrorInvalidValue;
    return (find(b, a) < b->nafter) == there ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t check(const struct kl_cudart_graph *g, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                         size_t count, bool there)
{
    if (!g || (count && (!from || !to))) return cudaErrorInvalidValue;
    if (g->captured) return cudaErrorNotSupported;
    for (size_t i = 0; i < count; i++) {
        KL_CUDA_TRY(ends(g, from[i], to[i], there));
        for (size_t k = 0; k < i; k++)
            if (from[k] == from[i] && to[k] == to[i]) return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count)
{
    cudaError_t rc = check(kl_cudart_graph(graph), from, to, count, false);

    (void)edges;
    for (size_t i = 0; i < count && !rc; i++)
        if (!kl_cudart_node_wait(kl_cudart_node(to[i]), kl_cudart_node(from[i]))) rc = cudaErrorMemoryAllocation;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY_13(cudaGraphAddDependencies);
KL_CUDART_ENTRY_12(cudaGraphAddDependencies_v2, cudaGraphAddDependencies);

static void forget(struct kl_cudart_node *n, const struct kl_cudart_node *after)
{
    size_t at = find(n, after);

    if (at == n->nafter) return;
    memmove(n->after + at, n->after + at + 1, (n->nafter - at - 1) * sizeof(struct kl_cudart_node *));
    n->nafter--;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t count)
{
    cudaError_t rc = check(kl_cudart_graph(graph), from, to, count, true);

    (void)edges;
    for (size_t i = 0; i < count && !rc; i++) forget(kl_cudart_node(to[i]), kl_cudart_node(from[i]));
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY_13(cudaGraphRemoveDependencies);
KL_CUDART_ENTRY_12(cudaGraphRemoveDependencies_v2, cudaGraphRemoveDependencies);

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    struct kl_cudart_node *n = kl_cudart_node(node);

    if (!n || n->captured) return kl_cudart_done(n ? cudaErrorNotSupported : cudaErrorInvalidValue);
    struct kl_cudart_graph *g = n->graph;
    size_t at = n->number;
    for (size_t i = 0; i < g->nnodes; i++) forget(g->node[i], n);
    memmove(g->node + at, g->node + at + 1, (g->nnodes - at - 1) * sizeof(struct kl_cudart_node *));
    g->nnodes--;
    for (size_t i = at; i < g->nnodes; i++) g->node[i]->number = i;
    kl_cudart_node_free(n);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphDestroyNode);

/* ---- as CUDA 12 has them: without data of edges ---- */

static cudaError_t get_edges_12(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count)
{
    return cudaGraphGetEdges(graph, from, to, NULL, count);
}
KL_CUDART_ENTRY_12(cudaGraphGetEdges, get_edges_12);

static cudaError_t get_dependencies_12(cudaGraphNode_t node, cudaGraphNode_t *after, size_t *count)
{
    return cudaGraphNodeGetDependencies(node, after, NULL, count);
}
KL_CUDART_ENTRY_12(cudaGraphNodeGetDependencies, get_dependencies_12);

static cudaError_t get_dependents_12(cudaGraphNode_t node, cudaGraphNode_t *before, size_t *count)
{
    return cudaGraphNodeGetDependentNodes(node, before, NULL, count);
}
KL_CUDART_ENTRY_12(cudaGraphNodeGetDependentNodes, get_dependents_12);

static cudaError_t add_dependencies_12(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                       size_t count)
{
    return cudaGraphAddDependencies(graph, from, to, NULL, count);
}
KL_CUDART_ENTRY_12(cudaGraphAddDependencies, add_dependencies_12);

static cudaError_t remove_dependencies_12(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                          size_t count)
{
    return cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}
KL_CUDART_ENTRY_12(cudaGraphRemoveDependencies, remove_dependencies_12);
