/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/work.h"

#include "compat/cuda/core/event.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/graph.h"
#include "compat/cuda/runtime/kernel.h"

#include <stdlib.h>

/* ---- kernels ---- */

static bool copy_arguments(struct kl_cudart_work *w, const struct kl_engine_kernel *kernel, void **arguments)
{
    w->packed = calloc(1, kernel->argument_bytes + 1);
    w->arguments = calloc(kernel->parameter_count + 1, sizeof *w->arguments);
    if (!w->packed || !w->arguments) return false;
    if (kernel->parameter_count) kl_engine_pack(kernel, arguments, w->packed);
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        w->arguments[i] = (char *)w->packed + kernel->parameters[i].offset;
    w->kernel.kernelParams = w->arguments;
    return true;
}

cudaError_t kl_cudart_work_kernel(struct kl_cudart_work *w, const struct cudaKernelNodeParams *p)
{
    *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeKernel};
    if (!p) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    const struct kl_engine_kernel *kernel = kl_engine_find_kernel(p->func);
    if (!kernel) {
        const char *foreign = kl_cudart_foreign_kernel(p->func);
        return foreign ? kl_cudart_refuse_kernel(foreign) : cudaErrorInvalidDeviceFunction;
    }
    if (p->extra || (kernel->parameter_count && !p->kernelParams)) return cudaErrorInvalidValue;
    w->kernel = *p;
    if (copy_arguments(w, kernel, p->kernelParams)) return cudaSuccess;
    kl_cudart_work_end(w);
    return cudaErrorMemoryAllocation;
}

static cudaError_t emit_kernel(const struct kl_cudart_work *w, cudaStream_t stream)
{
    const struct kl_cudart_launch launch = {.function = w->kernel.func,
                                            .grid = w->kernel.gridDim,
                                            .block = w->kernel.blockDim,
                                            .arguments = w->arguments,
                                            .shared_bytes = w->kernel.sharedMemBytes,
                                            .cooperative = w->cooperative,
                                            .cluster = w->cluster};

    return kl_cudart_launch(&launch, stream);
}

/* ---- copies and fills ---- */

cudaError_t kl_cudart_work_copy(struct kl_cudart_work *w, const struct cudaMemcpy3DParms *p)
{
    struct kl_cuda_box box;

    *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeMemcpy};
    KL_CUDA_TRY(kl_cudart_box(p, &box));
    if ((unsigned)p->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    w->copy = *p;
    return cudaSuccess;
}

cudaError_t kl_cudart_work_row(struct kl_cudart_work *w, void *to, const void *from, size_t bytes,
                               enum cudaMemcpyKind kind)
{
    const struct cudaMemcpy3DParms p = {
        .srcPtr = {.ptr = (void *)(uintptr_t)from, .pitch = bytes, .xsize = bytes, .ysize = 1},
        .dstPtr = {.ptr = to, .pitch = bytes, .xsize = bytes, .ysize = 1},
        .extent = {.width = bytes, .height = 1, .depth = 1},
        .kind = kind};

    *w = (struct kl_cudart_work){0};
    return to && from && bytes ? kl_cudart_work_copy(w, &p) : cudaErrorInvalidValue;
}

static cudaError_t emit_copy(const struct kl_cudart_work *w, cudaStream_t stream)
{
    struct kl_cuda_box box;

    KL_CUDA_TRY(kl_cudart_box(&w->copy, &box));
    return kl_cuda_copy(&box, (int)w->copy.kind, stream, KL_CUDA_ASYNC);
}

cudaError_t kl_cudart_work_fill(struct kl_cudart_work *w, const struct cudaMemsetParams *p)
{
    *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeMemset};
    if (!p || !p->dst || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return cudaErrorInvalidValue;
    w->fill = *p;
    return cudaSuccess;
}

static cudaError_t emit_fill(const struct kl_cudart_work *w, cudaStream_t stream)
{
    const struct cudaMemsetParams *p = &w->fill;
    const struct kl_cuda_box box = {.to = p->dst,
                                    .width = p->width * p->elementSize,
                                    .height = p->height ? p->height : 1,
                                    .depth = 1,
                                    .to_pitch = p->pitch};

    return kl_cuda_fill(&box, p->value, (int)p->elementSize, stream, KL_CUDA_ASYNC);
}

/* ---- functions and graphs ---- */

cudaError_t kl_cudart_work_host(struct kl_cudart_work *w, const struct cudaHostNodeParams *p)
{
    *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeHost};
    if (!p || !p->fn) return cudaErrorInvalidValue;
    w->host = *p;
    return cudaSuccess;
}

cudaError_t kl_cudart_work_event(struct kl_cudart_work *w, enum cudaGraphNodeType type, cudaEvent_t event)
{
    *w = (struct kl_cudart_work){.type = type, .event = event};
    return kl_cuda_event_known(event) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

bool kl_cudart_work_take(struct kl_cudart_work *w, struct kl_cudart_graph *graph)
{
    struct kl_cudart_graph **grown = realloc(w->inner, (w->ninner + 1) * sizeof(struct kl_cudart_graph *));

    if (!grown) return false;
    w->inner = grown;
    w->inner[w->ninner++] = graph;
    graph->part = true;
    return true;
}

static bool take_copy(struct kl_cudart_work *w, const struct kl_cudart_graph *graph)
{
    struct kl_cudart_graph *copy = kl_cudart_graph_copy(graph);

    if (copy && kl_cudart_work_take(w, copy)) return true;
    kl_cudart_graph_free(copy);
    return false;
}

cudaError_t kl_cudart_work_child(struct kl_cudart_work *w, cudaGraph_t graph)
{
    const struct kl_cudart_graph *g = kl_cudart_graph(graph);

    *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeGraph};
    if (!g || g->moved) return cudaErrorInvalidValue;
    return take_copy(w, g) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- all of them ---- */

cudaError_t kl_cudart_work_any(struct kl_cudart_work *w, const struct cudaGraphNodeParams *p)
{
    if (!p) return cudaErrorInvalidValue;
    switch (p->type) {
    case cudaGraphNodeTypeKernel:
        return kl_cudart_work_kernel(w, (const void *)&p->kernel);
    case cudaGraphNodeTypeMemcpy:
        return kl_cudart_work_copy(w, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        return kl_cudart_work_fill(w, (const void *)&p->memset);
    case cudaGraphNodeTypeHost:
        return kl_cudart_work_host(w, (const void *)&p->host);
    case cudaGraphNodeTypeGraph:
        if (p->graph.ownership != cudaGraphChildGraphOwnershipClone) return cudaErrorInvalidValue;
        return kl_cudart_work_child(w, p->graph.graph);
    case cudaGraphNodeTypeEventRecord:
        return kl_cudart_work_event(w, p->type, p->eventRecord.event);
    case cudaGraphNodeTypeWaitEvent:
        return kl_cudart_work_event(w, p->type, p->eventWait.event);
    case cudaGraphNodeTypeMemAlloc: /* its address cannot change */
    case cudaGraphNodeTypeMemFree:
        return cudaErrorInvalidValue;
    case cudaGraphNodeTypeEmpty:
        *w = (struct kl_cudart_work){.type = cudaGraphNodeTypeEmpty};
        return cudaSuccess;
    default:
        return (unsigned)p->type < cudaGraphNodeTypeCount ? cudaErrorNotSupported : cudaErrorInvalidValue;
    }
}

bool kl_cudart_work_again(struct kl_cudart_work *w, const struct kl_cudart_work *of)
{
    *w = *of;
    w->arguments = NULL;
    w->packed = NULL;
    w->bodies = w->condition.phGraph_out = NULL;
    w->inner = NULL;
    w->ninner = 0;
    for (size_t i = 0; i < of->ninner; i++)
        if (!take_copy(w, of->inner[i])) return false;
    const struct kl_engine_kernel *kernel = of->arguments ? kl_engine_find_kernel(of->kernel.func) : NULL;
    return !kernel || copy_arguments(w, kernel, of->arguments);
}

void kl_cudart_work_end(struct kl_cudart_work *w)
{
    for (size_t i = 0; i < w->ninner; i++) kl_cudart_graph_free(w->inner[i]);
    free(w->inner);
    free(w->bodies);
    free(w->arguments);
    free(w->packed);
    *w = (struct kl_cudart_work){.type = w->type};
}

cudaError_t kl_cudart_work_emit(const struct kl_cudart_work *w, cudaStream_t stream)
{
    switch (w->type) {
    case cudaGraphNodeTypeKernel:
        return emit_kernel(w, stream);
    case cudaGraphNodeTypeMemcpy:
        return emit_copy(w, stream);
    case cudaGraphNodeTypeMemset:
        return emit_fill(w, stream);
    case cudaGraphNodeTypeHost:
        return kl_cuda_stream_call(stream, w->host.fn, NULL, w->host.userData);
    default:
        return cudaSuccess;
    }
}
