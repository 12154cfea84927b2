/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.c - graphs as a whole: made, copied, printed.
 */
#include "compat/cuda/runtime/graph.h"

#include "base/atomic.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/runtime/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

struct kl_cudart_graph *kl_cudart_graph(cudaGraph_t graph)
{
    struct kl_cudart_graph *g = kl_cudart_graph_begun(graph);

    return g && !kl_load_acquire(&g->capture) ? g : NULL;
}

bool kl_cudart_graph_publish(struct kl_cudart_graph *g)
{
    if (!g->handle) g->handle = kl_cuda_handle_make(KL_CUDA_GRAPH, g);
    return g->handle;
}

struct kl_cudart_graph *kl_cudart_graph_make(void)
{
    struct kl_cudart_graph *g = calloc(1, sizeof *g);

    if (g && kl_cudart_graph_publish(g)) return g;
    free(g);
    return NULL;
}

static void drop_captured(struct kl_cudart_captured *c)
{
    if (!c || kl_fetch_sub_acq_rel(&c->count, 1) != 1) return;
    koloGraphDestroy(c->own);
    free(c);
}

void kl_cudart_graph_free(struct kl_cudart_graph *g)
{
    if (!g) return;
    if (g->handle) kl_cuda_handle_take(KL_CUDA_GRAPH, g->handle);
    for (size_t i = 0; i < g->nnodes; i++) kl_cudart_node_free(g->node[i]);
    free(g->node);
    drop_captured(g->captured);
    free(g->condition);
    free(g->behind);
    kl_cudart_reference_release(g->kept);
    free(g);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    cudaError_t rc = graph && !flags ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    struct kl_cudart_graph *g = kl_cudart_graph_make();
    if (!g) return kl_cudart_done(cudaErrorMemoryAllocation);
    *graph = g->handle;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphCreate);

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!g || g->part) return kl_cudart_done(cudaErrorInvalidValue);
    kl_cudart_graph_free(g);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphDestroy);

/* ---- copies ---- */

static bool copy_node(struct kl_cudart_graph *to, const struct kl_cudart_node *from)
{
    struct kl_cudart_node *n = kl_cudart_node_make(to);

    if (!n) return false;
    n->of = from->handle;
    n->captured = from->captured;
    n->disabled = from->disabled;
    return kl_cudart_work_again(&n->work, &from->work);
}

static bool copy_edges(struct kl_cudart_node *to, const struct kl_cudart_node *from)
{
    for (size_t i = 0; i < from->nafter; i++)
        if (!kl_cudart_node_wait(to, to->graph->node[from->after[i]->number])) return false;
    return true;
}

static bool copy_conditions(struct kl_cudart_graph *to, const struct kl_cudart_graph *from)
{
    const size_t bytes = from->nconditions * sizeof(struct kl_cudart_condition *);

    if (!bytes) return true;
    to->condition = malloc(bytes);
    if (!to->condition) return false;
    memcpy(to->condition, from->condition, bytes);
    to->nconditions = from->nconditions;
    return true;
}

struct kl_cudart_graph *kl_cudart_graph_copy(const struct kl_cudart_graph *g)
{
    struct kl_cudart_graph *copy = calloc(1, sizeof *copy);
    bool copied = copy;

    for (size_t i = 0; copied && i < g->nnodes; i++) copied = copy_node(copy, g->node[i]);
    for (size_t i = 0; copied && i < g->nnodes; i++) copied = copy_edges(copy->node[i], g->node[i]);
    if (copied) copied = kl_cudart_reference_copy(&copy->kept, g->kept) && copy_conditions(copy, g);
    if (!copied) {
        kl_cudart_graph_free(copy);
        return NULL;
    }
    copy->captured = g->captured;
    if (copy->captured) kl_fetch_add_relaxed(&copy->captured->count, 1);
    return copy;
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaError_t rc = clone && g ? kl_cudart_graph_name_captured(g) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    struct kl_cudart_graph *copy = kl_cudart_graph_copy(g);
    if (!copy || !kl_cudart_graph_publish(copy)) {
        kl_cudart_graph_free(copy);
        return kl_cudart_done(cudaErrorMemoryAllocation);
    }
    *clone = copy->handle;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphClone);

/* ---- looked at ---- */

static void print_node(FILE *file, const struct kl_cudart_node *n, size_t number)
{
    static const char *const names[cudaGraphNodeTypeCount] = {
        [cudaGraphNodeTypeKernel] = "kernel",
        [cudaGraphNodeTypeMemcpy] = "memcpy",
        [cudaGraphNodeTypeMemset] = "memset",
        [cudaGraphNodeTypeHost] = "host",
        [cudaGraphNodeTypeGraph] = "graph",
        [cudaGraphNodeTypeEmpty] = "empty",
        [cudaGraphNodeTypeWaitEvent] = "wait for event",
        [cudaGraphNodeTypeEventRecord] = "record event",
        [cudaGraphNodeTypeMemAlloc] = "alloc",
        [cudaGraphNodeTypeMemFree] = "free",
        [cudaGraphNodeTypeConditional] = "condition",
    };

    fprintf(file, "    n%zu [label=\"%zu: %s\"];\n", number, number, names[n->work.type]);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    size_t captured = 0;

    (void)flags;
    if (!g || !path) return kl_cudart_done(cudaErrorInvalidValue);
    FILE *file = fopen(path, "we");
    if (!file) return kl_cudart_done(cudaErrorOperatingSystem);
    fputs("digraph graph_of_kolo {\n", file);
    if (g->captured && !koloGraphGetNodeCount(g->captured->own, &captured))
        fprintf(file, "    n0 [label=\"captured: %zu nodes\"];\n", captured);
    for (size_t i = 0; i < g->nnodes && !g->captured; i++) {
        print_node(file, g->node[i], i);
        for (size_t k = 0; k < g->node[i]->nafter; k++)
            fprintf(file, "    n%zu -> n%zu;\n", g->node[i]->after[k]->number, i);
    }
    fputs("}\n", file);
    return kl_cudart_done(fclose(file) ? cudaErrorOperatingSystem : cudaSuccess);
}
KL_CUDART_ENTRY(cudaGraphDebugDotPrint);
