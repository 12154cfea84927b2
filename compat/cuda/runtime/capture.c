/* SPDX-License-Identifier: Apache-2.0 */
/**
 * capture.c - from the begin of a capture to its end. The graph has a handle from the begin on, so that objects can be tied to it.
 */
#include "compat/cuda/runtime/capture.h"

#include "base/atomic.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/node.h"

#include <stdlib.h>
#include <string.h>

static cudaError_t begin(cudaStream_t stream, int mode, struct kl_cudart_graph *g)
{
    uint64_t id = 0;

    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamBeginCapture(stream, (koloCaptureMode_t)mode), cudaErrorInvalidValue));
    koloStreamGetCaptureInfo(stream, &(koloCaptureStatus_t){0}, &id);
    g->stream = stream;
    kl_store_release(&g->capture, id); /* other threads that look for theirs read it */
    return cudaSuccess;
}

static cudaError_t check(cudaStream_t stream, int mode)
{
    KL_CUDA_TRY(kl_cuda_enter());
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    return koloStreamGetInfo(stream, NULL, NULL) ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

cudaError_t kl_cudart_capture_begin(cudaStream_t stream, int mode)
{
    KL_CUDA_TRY(check(stream, mode));
    struct kl_cudart_graph *g = kl_cudart_graph_make();
    cudaError_t rc = g ? begin(stream, mode, g) : cudaErrorMemoryAllocation;
    if (rc) kl_cudart_graph_free(g);
    return rc;
}

/* Where it is going to be, behind these of its nodes. */
static bool aim(struct kl_cudart_graph *g, cudaGraph_t into, const cudaGraphNode_t *after, size_t count)
{
    g->behind = malloc(count * sizeof(cudaGraphNode_t) + 1);
    if (!g->behind) return false;
    if (count) memcpy(g->behind, after, count * sizeof(cudaGraphNode_t));
    g->nbehind = count;
    g->into = into;
    return true;
}

cudaError_t kl_cudart_capture_begin_into(cudaStream_t stream, cudaGraph_t into, const cudaGraphNode_t *after,
                                         size_t count, int mode)
{
    KL_CUDA_TRY(check(stream, mode));
    KL_CUDA_TRY(kl_cudart_node_check(kl_cudart_graph(into), after, count));
    struct kl_cudart_graph *g = kl_cudart_graph_make();
    bool aimed = g && aim(g, into, after, count);
    cudaError_t rc = aimed ? begin(stream, mode, g) : cudaErrorMemoryAllocation;
    if (rc) kl_cudart_graph_free(g);
    return rc;
}

struct search {
    uint64_t id;
    struct kl_cudart_graph *found;
};

static bool of_capture(void *ctx, void *handle, void *object)
{
    struct search *s = ctx;
    struct kl_cudart_graph *g = object;

    (void)handle;
    if (kl_load_acquire(&g->capture) == s->id) s->found = g;
    return s->found;
}

static struct kl_cudart_graph *find(uint64_t id)
{
    struct search s = {.id = id};

    if (id) kl_cuda_handle_each(KL_CUDA_GRAPH, of_capture, &s);
    return s.found;
}

/* The one that the program knows. */
static cudaGraph_t known_graph(const struct kl_cudart_graph *g)
{
    return g->into ? g->into : g->handle;
}

/* A capture into an existing graph becomes one of its nodes. */
static cudaError_t settle(struct kl_cudart_graph *g, cudaGraph_t *graph)
{
    struct kl_cudart_work w = {.type = cudaGraphNodeTypeGraph};
    cudaGraphNode_t node;

    *graph = known_graph(g);
    if (!g->into) return cudaSuccess;
    bool taken = kl_cudart_work_take(&w, g);
    cudaError_t rc = taken ? kl_cudart_node_add(&node, g->into, g->behind, g->nbehind, &w) : cudaErrorMemoryAllocation;
    if (rc && !taken) kl_cudart_graph_free(g);
    if (rc) kl_cudart_work_end(&w);
    if (rc) *graph = NULL;
    return rc;
}

cudaError_t kl_cudart_capture_end(cudaStream_t stream, cudaGraph_t *out)
{
    koloGraph_t captured = NULL;
    koloCaptureStatus_t status = koloCaptureStatusNone;
    cudaGraph_t graph = NULL;
    uint64_t id = 0;

    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetCaptureInfo(stream, &status, &id)) return cudaErrorInvalidResourceHandle;
    struct kl_cudart_graph *g = find(id);
    if (!out && !(g && g->into)) return cudaErrorInvalidValue; /* it could be had nowhere else */
    if (out) *out = NULL;
    koloGetLastReason();
    cudaError_t rc = kl_cuda_from_kolo(koloStreamEndCapture(stream, &captured), cudaErrorInvalidValue);
    if (rc) { /* refused, and perhaps over */
        if (g && !kl_cuda_stream_captures(g->stream)) kl_cudart_graph_free(g);
        return rc;
    }
    if (!g) g = kl_cudart_graph_make();
    struct kl_cudart_captured *c = g ? malloc(sizeof *c) : NULL;
    if (!c) {
        koloGraphDestroy(captured);
        kl_cudart_graph_free(g);
        return cudaErrorMemoryAllocation;
    }
    *c = (struct kl_cudart_captured){.count = 1, .own = captured};
    g->captured = c;
    kl_store_release(&g->capture, 0);
    rc = settle(g, &graph);
    if (out) *out = graph;
    return rc;
}

cudaError_t kl_cudart_capture_info(cudaStream_t stream, struct kl_cudart_capture_info *info)
{
    koloCaptureStatus_t status;
    uint64_t id;

    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetCaptureInfo(stream, &status, &id)) return cudaErrorInvalidResourceHandle;
    const struct kl_cudart_graph *g = find(id);
    *info = (struct kl_cudart_capture_info){
        .status = (enum cudaStreamCaptureStatus)status, .id = id, .graph = g ? known_graph(g) : NULL};
    return cudaSuccess;
}

/* ---- as programs call it ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return kl_cudart_done(kl_cudart_capture_begin(stream, (int)mode));
}
KL_CUDART_ENTRY(cudaStreamBeginCapture);

/* Further data of edges is for overlapping kernels: these do not overlap. */
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode)
{
    (void)edges;
    return kl_cudart_done(kl_cudart_capture_begin_into(stream, graph, after, count, (int)mode));
}
KL_CUDART_ENTRY(cudaStreamBeginCaptureToGraph);

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return kl_cudart_done(kl_cudart_capture_end(stream, graph));
}
KL_CUDART_ENTRY(cudaStreamEndCapture);

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    struct kl_cudart_capture_info info;
    cudaError_t rc = status ? kl_cudart_capture_info(stream, &info) : cudaErrorInvalidValue;

    if (!rc) *status = info.status;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamIsCapturing);

/* Dependencies are kolo's to know: there are none to be told. */
static cudaError_t get_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                            cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
    struct kl_cudart_capture_info info;
    cudaError_t rc = status ? kl_cudart_capture_info(stream, &info) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    *status = info.status;
    if (id) *id = info.id;
    if (graph) *graph = info.graph;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count)
{
    if (edges) *edges = NULL;
    return get_info(stream, status, id, graph, dependencies, count);
}
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo);
KL_CUDART_ENTRY_13(cudaStreamGetCaptureInfo);

static cudaError_t get_info_12(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                               cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
    return get_info(stream, status, id, graph, dependencies, count);
}
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo_v2, get_info_12);

static cudaError_t get_info_12_own(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                   cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
    return get_info(kl_cudart_own(stream), status, id, graph, dependencies, count);
}
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo_v2_ptsz, get_info_12_own);

static cudaError_t get_info_11(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
    return get_info(stream, status, id, NULL, NULL, NULL);
}
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo, get_info_11);

static cudaError_t get_info_11_own(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
    return get_info_11(kl_cudart_own(stream), status, id);
}
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo_ptsz, get_info_11_own);

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    koloCaptureMode_t swapped;

    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed) return kl_cudart_done(cudaErrorInvalidValue);
    swapped = (koloCaptureMode_t)*mode;
    cudaError_t rc = kl_cuda_from_kolo(koloThreadExchangeCaptureMode(&swapped), cudaErrorInvalidValue);
    if (!rc) *mode = (enum cudaStreamCaptureMode)swapped;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaThreadExchangeStreamCaptureMode);
