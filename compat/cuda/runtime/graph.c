/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.c - captures, and graphs as a whole.
 */
#include "compat/cuda/runtime/graph.h"

#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/runtime/capture.h"
#include "compat/cuda/runtime/entry.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- life ---- */

struct kl_cudart_graph *kl_cudart_graph(cudaGraph_t graph)
{
    return kl_cuda_handle_find(KL_CUDA_GRAPH, graph);
}

struct kl_cudart_graph *kl_cudart_graph_make(void)
{
    struct kl_cudart_graph *g = calloc(1, sizeof *g);

    if (!g) return NULL;
    g->handle = kl_cuda_handle_make(KL_CUDA_GRAPH, g);
    if (g->handle) return g;
    free(g);
    return NULL;
}

void kl_cudart_graph_free(struct kl_cudart_graph *g)
{
    if (!g) return;
    if (g->handle) kl_cuda_handle_take(KL_CUDA_GRAPH, g->handle);
    for (size_t i = 0; i < g->nnodes; i++) kl_cudart_node_free(g->node[i]);
    free(g->node);
    koloGraphDestroy(g->captured);
    kl_cudart_kept_release(g->kept);
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

    if (!g || g->capturing) return kl_cudart_done(cudaErrorInvalidValue);
    kl_cudart_graph_free(g);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphDestroy);

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!clone || !g || g->capturing) return kl_cudart_done(cudaErrorInvalidValue);
    if (g->captured)
        return kl_cudart_done(cudaErrorNotSupported); /* it cannot be told apart from the one that it is of */
    struct kl_cudart_graph *copy = kl_cudart_graph_copy(g);
    if (copy) copy->handle = kl_cuda_handle_make(KL_CUDA_GRAPH, copy);
    if (!copy || !copy->handle) {
        kl_cudart_graph_free(copy);
        return kl_cudart_done(cudaErrorMemoryAllocation);
    }
    *clone = copy->handle;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphClone);

/* ---- executables ---- */

struct exec {
    koloGraphExec_t own;
    unsigned long long flags;
    enum cudaGraphNodeType *type; /* of nodes made by hand, to compare */
    size_t ntypes;
    bool captured;
    struct kl_cudart_kept *kept;
};

static void exec_free(struct exec *x)
{
    if (!x) return;
    koloGraphExecDestroy(x->own);
    kl_cudart_kept_release(x->kept);
    free(x->type);
    free(x);
}

static cudaError_t ready(struct exec *x, koloGraph_t graph)
{
    return kl_cuda_from_kolo(koloGraphInstantiate(&x->own, graph), cudaErrorInvalidValue);
}

/* The capture of nodes made by hand: on a stream of its own. */
static cudaError_t begin(cudaStream_t stream)
{
    return kl_cuda_from_kolo(koloStreamBeginCapture(stream, koloCaptureModeRelaxed), cudaErrorUnknown);
}

static cudaError_t end(struct exec *x, cudaStream_t stream)
{
    koloGraph_t graph;
    cudaError_t rc = kl_cuda_from_kolo(koloStreamEndCapture(stream, &graph), cudaErrorUnknown);

    if (!rc) rc = ready(x, graph);
    koloGraphDestroy(graph);
    return rc;
}

static bool may_run(const struct kl_cudart_node *n)
{
    if (n->emitted) return false;
    for (size_t i = 0; i < n->nafter; i++)
        if (!n->after[i]->emitted) return false;
    return true;
}

/* Nodes as soon as what they wait for has been queued; in the order of their making where that leaves a choice. */
static cudaError_t emit_all(const struct kl_cudart_graph *g, cudaStream_t stream)
{
    size_t left = g->nnodes;

    for (size_t i = 0; i < g->nnodes; i++) g->node[i]->emitted = false;
    while (left) {
        size_t before = left;

        for (size_t i = 0; i < g->nnodes; i++) {
            if (!may_run(g->node[i])) continue;
            struct kl_cudart_node *n = g->node[i];

            KL_CUDA_TRY(n->child ? emit_all(n->child, stream) : kl_cudart_node_emit(n, stream));
            n->emitted = true;
            left--;
        }
        if (left == before) return cudaErrorInvalidValue; /* they wait for each other */
    }
    return cudaSuccess;
}

static cudaError_t by_hand(struct exec *x, const struct kl_cudart_graph *g)
{
    koloStream_t stream;
    koloGraph_t rest;

    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamCreate(&stream, KOLO_STREAM_DEFAULT), cudaErrorUnknown));
    cudaError_t rc = begin(stream);
    if (!rc) rc = emit_all(g, stream);
    if (!rc)
        rc = end(x, stream);
    else if (!koloStreamEndCapture(stream, &rest))
        koloGraphDestroy(rest);
    koloStreamRelease(stream);
    return rc;
}

static cudaError_t note_types(struct exec *x, const struct kl_cudart_graph *g)
{
    x->type = calloc(g->nnodes + 1, sizeof *x->type);
    if (!x->type) return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < g->nnodes; i++) x->type[i] = g->node[i]->type;
    x->ntypes = g->nnodes;
    return cudaSuccess;
}

static cudaError_t make_exec(const struct kl_cudart_graph *g, unsigned long long flags, struct exec **out)
{
    struct exec *x = calloc(1, sizeof *x);

    if (!x) return cudaErrorMemoryAllocation;
    x->flags = flags;
    x->captured = g->captured;
    x->kept = kl_cudart_kept_copy(g->kept);
    cudaError_t rc = g->captured ? ready(x, g->captured) : by_hand(x, g);
    if (!rc && !g->captured) rc = note_types(x, g);
    if (!rc)
        *out = x;
    else
        exec_free(x);
    return rc;
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    struct exec *x;

    if (!exec || !g || g->capturing || flags & ~15ull) return cudaErrorInvalidValue;
    if (flags & cudaGraphInstantiateFlagDeviceLaunch) return cudaErrorNotSupported;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(make_exec(g, flags, &x));
    *exec = kl_cuda_handle_make(KL_CUDA_EXEC, x);
    if (*exec) return cudaSuccess;
    exec_free(x);
    return cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return kl_cudart_done(instantiate(exec, graph, flags));
}
KL_CUDART_ENTRY(cudaGraphInstantiate);

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return kl_cudart_done(instantiate(exec, graph, flags));
}
KL_CUDART_ENTRY(cudaGraphInstantiateWithFlags);

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters)
{
    if (!parameters) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = instantiate(exec, graph, parameters->flags);
    parameters->errNode_out = NULL;
    parameters->result_out = rc ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphInstantiateWithParams);

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    const struct exec *x = kl_cuda_handle_find(KL_CUDA_EXEC, exec);

    if (!x || !flags) return kl_cudart_done(cudaErrorInvalidValue);
    *flags = x->flags;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphExecGetFlags);

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    struct exec *x = kl_cuda_handle_take(KL_CUDA_EXEC, exec);

    if (!x) return kl_cudart_done(cudaErrorInvalidValue);
    exec_free(x);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphExecDestroy);

/* ---- launches ---- */

static cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const struct exec *x = kl_cuda_handle_find(KL_CUDA_EXEC, exec);

    if (!x) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    return kl_cuda_from_kolo(koloGraphLaunch(x->own, stream), cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return kl_cudart_done(launch(exec, stream));
}
KL_CUDART_ENTRY(cudaGraphLaunch);

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!kl_cuda_handle_find(KL_CUDA_EXEC, exec)) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(koloStreamGetInfo(stream, NULL, NULL) ? cudaErrorInvalidResourceHandle : kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaGraphUpload);

/* ---- updates ---- */

static cudaGraphNode_t node_at(const struct kl_cudart_graph *g, size_t i)
{
    return i < g->nnodes ? g->node[i]->handle : NULL;
}

/* What keeps nodes made by hand from taking the place of those of the executable. */
static enum cudaGraphExecUpdateResult compare(const struct exec *x, const struct kl_cudart_graph *g, size_t *at)
{
    *at = 0;
    if (x->captured != (g->captured != NULL) || x->ntypes != g->nnodes) return cudaGraphExecUpdateErrorTopologyChanged;
    for (*at = 0; *at < g->nnodes; ++*at)
        if (x->type[*at] != g->node[*at]->type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    return cudaGraphExecUpdateSuccess;
}

static cudaError_t replace(struct exec *x, const struct kl_cudart_graph *g)
{
    struct exec *fresh, old = *x;

    KL_CUDA_TRY(make_exec(g, x->flags, &fresh));
    *x = *fresh;
    *fresh = old;
    exec_free(fresh);
    return cudaSuccess;
}

static cudaError_t update(struct exec *x, const struct kl_cudart_graph *g, cudaGraphExecUpdateResultInfo *info)
{
    koloGraphUpdateResult_t result = koloGraphUpdateSuccess;
    size_t at;

    info->result = x->captured && g->captured ? cudaGraphExecUpdateSuccess : compare(x, g, &at);
    if (info->result) {
        info->errorNode = node_at(g, at);
        return cudaErrorGraphExecUpdateFailure;
    }
    if (!x->captured) return replace(x, g);
    koloGetLastReason();
    cudaError_t rc = kl_cuda_from_kolo(koloGraphExecUpdate(x->own, g->captured, &result, &at), cudaErrorInvalidValue);
    info->result = (enum cudaGraphExecUpdateResult)result;
    return rc;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result)
{
    struct exec *x = kl_cuda_handle_find(KL_CUDA_EXEC, exec);
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaGraphExecUpdateResultInfo info = {.result = cudaGraphExecUpdateError};

    if (!x || !g || g->capturing) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_enter();
    if (!rc) rc = update(x, g, &info);
    if (rc && !info.result) info.result = cudaGraphExecUpdateError;
    if (result) *result = info;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphExecUpdate);

/* ---- looked at ---- */

static void print_node(FILE *file, const struct kl_cudart_node *n, size_t number)
{
    static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty"};

    fprintf(file, "    n%zu [label=\"%zu: %s\"];\n", number, number,
            (size_t)n->type < sizeof names / sizeof names[0] ? names[n->type] : "node");
}

static size_t number_of(const struct kl_cudart_graph *g, const struct kl_cudart_node *n)
{
    size_t i = 0;

    while (g->node[i] != n) i++;
    return i;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    size_t captured = 0;

    (void)flags;
    if (!g || g->capturing || !path) return kl_cudart_done(cudaErrorInvalidValue);
    FILE *file = fopen(path, "we");
    if (!file) return kl_cudart_done(cudaErrorOperatingSystem);
    fputs("digraph graph_of_kolo {\n", file);
    if (g->captured && !koloGraphGetNodeCount(g->captured, &captured))
        fprintf(file, "    n0 [label=\"captured: %zu nodes\"];\n", captured);
    for (size_t i = 0; i < g->nnodes; i++) {
        print_node(file, g->node[i], i);
        for (size_t k = 0; k < g->node[i]->nafter; k++)
            fprintf(file, "    n%zu -> n%zu;\n", number_of(g, g->node[i]->after[k]), i);
    }
    fputs("}\n", file);
    return kl_cudart_done(fclose(file) ? cudaErrorOperatingSystem : cudaSuccess);
}
KL_CUDART_ENTRY(cudaGraphDebugDotPrint);
