/* SPDX-License-Identifier: Apache-2.0 */
/** executable.c - graphs that can be launched, and their updates. */
#include "compat/cuda/runtime/executable.h"

#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/steps.h"

#include <stdlib.h>

/* ---- executables ---- */

struct exec {
    struct kl_cudart_steps steps;
    bool stale; /* the steps: nodes have changed since */
    unsigned long long flags;
    struct kl_cudart_graph *graph; /* a copy of its graph */
    koloEvent_t end;               /* of the last launch, which the next one waits for; NULL: kolo sees to it */
};

static void exec_free(struct exec *x)
{
    if (!x) return;
    kl_cudart_steps_free(&x->steps);
    kl_cudart_graph_free(x->graph);
    if (x->end) koloEventDestroy(x->end);
    free(x);
}

static struct exec *find(cudaGraphExec_t exec)
{
    return kl_cuda_handle_find(KL_CUDA_EXEC, exec);
}

static cudaError_t make_exec(const struct kl_cudart_graph *g, unsigned long long flags, struct exec **out)
{
    struct exec *x = calloc(1, sizeof *x);

    if (!x) return cudaErrorMemoryAllocation;
    x->flags = flags;
    x->graph = kl_cudart_graph_copy(g);
    cudaError_t rc = x->graph ? kl_cudart_steps_build(&x->steps, x->graph) : cudaErrorMemoryAllocation;
    if (!rc && !g->captured && koloEventCreateWithFlags(&x->end, KOLO_EVENT_DISABLE_TIMING))
        rc = cudaErrorMemoryAllocation;
    if (!rc)
        *out = x;
    else
        exec_free(x);
    return rc;
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);
    struct exec *x;

    if (!exec || !g || g->moved || flags & ~15ull) return cudaErrorInvalidValue;
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
    const struct exec *x = find(exec);

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

static void nothing(void *data)
{
    (void)data;
}

static void release_kept(void *data)
{
    kl_cudart_kept_release(data);
}

static cudaError_t refresh(struct exec *x)
{
    struct kl_cudart_steps fresh;

    if (!x->stale) return cudaSuccess;
    KL_CUDA_TRY(kl_cudart_steps_build(&fresh, x->graph));
    kl_cudart_steps_free(&x->steps); /* launched steps still run */
    x->steps = fresh;
    x->stale = false;
    return cudaSuccess;
}

/* Launches of one executable run one after the other, on whatever streams. */
static cudaError_t queue(struct exec *x, cudaStream_t stream)
{
    if (!x->end) return kl_cudart_steps_launch(&x->steps, stream);
    if (kl_cuda_stream_captures(stream)) return kl_cuda_stream_query(stream); /* which refuses */
    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamWaitEvent(stream, x->end, 0), cudaErrorInvalidResourceHandle));
    cudaError_t rc = kl_cudart_steps_launch(&x->steps, stream);
    koloEventRecord(x->end, stream);
    return rc;
}

/* Objects stay until the launch has run, whatever becomes of the executable. */
static cudaError_t launch_with(struct exec *x, struct kl_cudart_kept *kept, cudaStream_t stream)
{
    cudaError_t rc = refresh(x);

    if (!rc) rc = queue(x, stream);
    if (rc) kl_cudart_kept_release(kept);
    return rc || !kept ? rc : kl_cuda_stream_call(stream, nothing, release_kept, kept);
}

static cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream)
{
    struct exec *x = find(exec);
    struct kl_cudart_kept *kept = NULL;

    if (!x) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    if (kl_cudart_kept_collect(&kept, x->graph)) return launch_with(x, kept, stream);
    kl_cudart_kept_release(kept);
    return cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return kl_cudart_done(launch(exec, stream));
}
KL_CUDART_ENTRY(cudaGraphLaunch);

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!find(exec)) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(koloStreamGetInfo(stream, NULL, NULL) ? cudaErrorInvalidResourceHandle : kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaGraphUpload);

/* ---- updates ---- */

static struct kl_cudart_node *find_node(const struct kl_cudart_graph *g, cudaGraphNode_t of)
{
    for (size_t i = 0; i < g->nnodes; i++) {
        struct kl_cudart_node *n = g->node[i]->of == of ? g->node[i] : NULL;

        for (size_t k = 0; !n && k < g->node[i]->work.ninner; k++) n = find_node(g->node[i]->work.inner[k], of);
        if (n) return n;
    }
    return NULL;
}

cudaError_t kl_cudart_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node, struct kl_cudart_node **copy)
{
    const struct exec *x = find(exec);
    const struct kl_cudart_node *n = kl_cudart_node(node);

    if (x && x->graph->captured && n && n->captured) return cudaErrorNotSupported;
    *copy = x && node ? find_node(x->graph, node) : NULL;
    return *copy ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t kl_cudart_exec_changed(cudaGraphExec_t exec, const struct kl_cudart_node *copy)
{
    struct exec *x = find(exec);

    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cudart_steps_try(copy));
    x->stale = true;
    return cudaSuccess;
}

static bool same_edges(const struct kl_cudart_node *a, const struct kl_cudart_node *b)
{
    if (a->nafter != b->nafter) return false;
    for (size_t i = 0; i < a->nafter; i++)
        if (a->after[i]->number != b->after[i]->number) return false;
    return true;
}

static enum cudaGraphExecUpdateResult compare(const struct kl_cudart_graph *a, const struct kl_cudart_graph *b,
                                              size_t *at);

static enum cudaGraphExecUpdateResult compare_inner(const struct kl_cudart_work *a, const struct kl_cudart_work *b)
{
    enum cudaGraphExecUpdateResult got = cudaGraphExecUpdateSuccess;
    size_t within;

    if (a->ninner != b->ninner || a->condition.type != b->condition.type)
        return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; !got && i < a->ninner; i++) got = compare(a->inner[i], b->inner[i], &within);
    return got;
}

/* The reason why nodes made by hand cannot replace the executable's, if any. */
static enum cudaGraphExecUpdateResult compare(const struct kl_cudart_graph *a, const struct kl_cudart_graph *b,
                                              size_t *at)
{
    *at = 0;
    if (!a->captured != !b->captured) return cudaGraphExecUpdateErrorTopologyChanged;
    if (a->captured) return cudaGraphExecUpdateSuccess; /* kolo compares them */
    if (a->nnodes != b->nnodes) return cudaGraphExecUpdateErrorTopologyChanged;
    for (*at = 0; *at < b->nnodes; ++*at) {
        if (a->node[*at]->work.type != b->node[*at]->work.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
        if (!same_edges(a->node[*at], b->node[*at])) return cudaGraphExecUpdateErrorTopologyChanged;
        enum cudaGraphExecUpdateResult got = compare_inner(&a->node[*at]->work, &b->node[*at]->work);
        if (got) return got;
    }
    return cudaGraphExecUpdateSuccess;
}

/* Nodes keep the names that the program knows them by, and whether they run; graphs that are nodes as well. */
static void keep_names(struct kl_cudart_graph *to, const struct kl_cudart_graph *from)
{
    for (size_t i = 0; i < from->nnodes; i++) {
        to->node[i]->of = from->node[i]->of;
        to->node[i]->disabled = from->node[i]->disabled;
        for (size_t k = 0; k < from->node[i]->work.ninner; k++)
            keep_names(to->node[i]->work.inner[k], from->node[i]->work.inner[k]);
    }
}

/* By a graph of the same shape. */
static cudaError_t replace(struct exec *x, const struct kl_cudart_graph *g)
{
    struct kl_cudart_graph *graph = kl_cudart_graph_copy(g);
    struct kl_cudart_steps steps;

    if (!graph) return cudaErrorMemoryAllocation;
    keep_names(graph, x->graph);
    cudaError_t rc = kl_cudart_steps_build(&steps, graph);
    if (rc) {
        kl_cudart_graph_free(graph);
        return rc;
    }
    kl_cudart_steps_free(&x->steps);
    kl_cudart_graph_free(x->graph);
    x->steps = steps;
    x->graph = graph;
    x->stale = false;
    return cudaSuccess;
}

static cudaError_t update_captured(struct exec *x, const struct kl_cudart_graph *g,
                                   enum cudaGraphExecUpdateResult *result)
{
    koloGraphUpdateResult_t why = koloGraphUpdateSuccess;

    koloGetLastReason();
    ncclResult_t rc = koloGraphExecUpdate(x->steps.step[0].graph, g->captured->own, &why, NULL);
    *result = (enum cudaGraphExecUpdateResult)why;
    return kl_cuda_from_kolo(rc, cudaErrorInvalidValue);
}

static cudaError_t update(struct exec *x, const struct kl_cudart_graph *g, cudaGraphExecUpdateResultInfo *info)
{
    size_t at;

    info->result = compare(x->graph, g, &at);
    if (info->result) {
        info->errorNode = at < g->nnodes ? g->node[at]->handle : NULL;
        return cudaErrorGraphExecUpdateFailure;
    }
    return g->captured ? update_captured(x, g, &info->result) : replace(x, g);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result)
{
    struct exec *x = find(exec);
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaGraphExecUpdateResultInfo info = {.result = cudaGraphExecUpdateError};

    if (!x || !g || g->moved) return kl_cudart_done(cudaErrorInvalidValue);
    cudaError_t rc = kl_cuda_enter();
    if (!rc) rc = update(x, g, &info);
    if (rc && !info.result) info.result = cudaGraphExecUpdateError;
    if (result) *result = info;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphExecUpdate);
