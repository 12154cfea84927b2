/* SPDX-License-Identifier: Apache-2.0 */
/** node.c - nodes made by hand. What they are given is copied. */
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/graph.h"
#include "compat/cuda/runtime/kernel.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

struct kl_cudart_node *kl_cudart_node_make(struct kl_cudart_graph *g, enum cudaGraphNodeType type)
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
    n->type = type;
    g->node[g->nnodes++] = n;
    return n;
}

void kl_cudart_node_free(struct kl_cudart_node *n)
{
    kl_cuda_handle_take(KL_CUDA_NODE, n->handle);
    kl_cudart_graph_free(n->child);
    free(n->after);
    free(n->arguments);
    free(n->packed);
    free(n);
}

static bool copy_arguments(struct kl_cudart_node *n, const struct kl_engine_kernel *kernel, void **arguments)
{
    n->packed = calloc(1, kernel->argument_bytes + 1);
    n->arguments = calloc(kernel->parameter_count + 1, sizeof *n->arguments);
    if (!n->packed || !n->arguments) return false;
    if (kernel->parameter_count) kl_engine_pack(kernel, arguments, n->packed);
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        n->arguments[i] = (char *)n->packed + kernel->parameters[i].offset;
    n->kernel.kernelParams = n->arguments;
    return true;
}

static cudaError_t set_kernel(struct kl_cudart_node *n, const struct cudaKernelNodeParams *p)
{
    const struct kl_engine_kernel *kernel = kl_engine_find_kernel(p->func);

    if (!kernel) {
        const char *foreign = kl_cudart_foreign_kernel(p->func);
        return foreign ? kl_cudart_refuse_kernel(foreign) : cudaErrorInvalidDeviceFunction;
    }
    if (p->extra || (kernel->parameter_count && !p->kernelParams)) return cudaErrorInvalidValue;
    n->kernel = *p;
    return copy_arguments(n, kernel, p->kernelParams) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static struct kl_cudart_node *find(cudaGraphNode_t node)
{
    return kl_cuda_handle_find(KL_CUDA_NODE, node);
}

/* Make a node and what it waits for; the caller fills it in, and calls drop_last if that fails. */
static cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                       struct kl_cudart_node *made)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);

    if (!out || !g || g->captured || g->capturing || (count && !after)) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; i++) {
        const struct kl_cudart_node *n = find(after[i]);
        if (!n || n->graph != g) return cudaErrorInvalidValue;
    }
    struct kl_cudart_node **list = calloc(count + 1, sizeof(struct kl_cudart_node *));
    struct kl_cudart_node *n = list ? kl_cudart_node_make(g, made->type) : NULL;
    if (!n) {
        free(list);
        return cudaErrorMemoryAllocation;
    }
    for (size_t i = 0; i < count; i++) list[i] = find(after[i]);
    made->handle = n->handle;
    made->graph = g;
    made->after = list;
    made->nafter = count;
    *n = *made;
    *out = n->handle;
    return cudaSuccess;
}

static void drop(struct kl_cudart_node *made)
{
    free(made->arguments);
    free(made->packed);
    kl_cudart_graph_free(made->child);
}

/* The node as it was filled in becomes one of the graph, or is dropped. */
static cudaError_t finish(cudaError_t rc, cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after,
                          size_t count, struct kl_cudart_node *made)
{
    if (!rc) rc = add(out, graph, after, count, made);
    if (rc) drop(made);
    return kl_cudart_done(rc);
}

/* ---- kinds ---- */

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaKernelNodeParams *parameters)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeKernel};
    cudaError_t rc = parameters ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = set_kernel(&n, parameters);
    return finish(rc, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddKernelNode);

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemcpy3DParms *parameters)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeMemcpy};
    cudaError_t rc = kl_cudart_box(parameters, &n.box);

    if (!rc) n.copy_kind = (int)parameters->kind;
    return finish(rc, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddMemcpyNode);

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct kl_cudart_node n = {
        .type = cudaGraphNodeTypeMemcpy, .box = kl_cuda_row(to, from, bytes), .copy_kind = (int)kind};
    bool legal = to && from && bytes;

    return finish(legal ? cudaSuccess : cudaErrorInvalidValue, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddMemcpyNode1D);

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemsetParams *p)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeMemset};
    bool legal = p && p->dst && (p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4);

    if (legal) {
        n.box = (struct kl_cuda_box){.to = p->dst,
                                     .width = p->width * p->elementSize,
                                     .height = p->height ? p->height : 1,
                                     .depth = 1,
                                     .to_pitch = p->pitch};
        n.fill_value = p->value;
        n.fill_element = (int)p->elementSize;
    }
    return finish(legal ? cudaSuccess : cudaErrorInvalidValue, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddMemsetNode);

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 const struct cudaHostNodeParams *parameters)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeHost};
    bool legal = parameters && parameters->fn;

    if (legal) n.host = *parameters;
    return finish(legal ? cudaSuccess : cudaErrorInvalidValue, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddHostNode);

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeEmpty};

    return finish(cudaSuccess, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddEmptyNode);

/* The child is copied, so it cannot be a captured one. */
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child)
{
    struct kl_cudart_node n = {.type = cudaGraphNodeTypeGraph};
    const struct kl_cudart_graph *g = kl_cudart_graph(child);

    if (!g || g->capturing || child == graph) return kl_cudart_done(cudaErrorInvalidValue);
    if (g->captured) return kl_cudart_done(cudaErrorNotSupported);
    n.child = kl_cudart_graph_copy(g);
    return finish(n.child ? cudaSuccess : cudaErrorMemoryAllocation, node, graph, after, count, &n);
}
KL_CUDART_ENTRY(cudaGraphAddChildGraphNode);

/* ---- copies of graphs ---- */

static size_t number_of(const struct kl_cudart_graph *g, const struct kl_cudart_node *n)
{
    size_t i = 0;

    while (g->node[i] != n) i++;
    return i;
}

static bool copy_node(struct kl_cudart_graph *to, const struct kl_cudart_node *from)
{
    struct kl_cudart_node *n = kl_cudart_node_make(to, from->type);
    cudaGraphNode_t handle = n ? n->handle : NULL;

    if (!n) return false;
    *n = *from;
    n->handle = handle;
    n->graph = to;
    n->arguments = NULL;
    n->packed = NULL;
    n->child = NULL;
    n->after = calloc(from->nafter + 1, sizeof(struct kl_cudart_node *));
    if (!n->after) return false;
    for (size_t i = 0; i < from->nafter; i++) n->after[i] = to->node[number_of(from->graph, from->after[i])];
    if (from->child && !(n->child = kl_cudart_graph_copy(from->child))) return false;
    return from->type != cudaGraphNodeTypeKernel ||
           copy_arguments(n, kl_engine_find_kernel(from->kernel.func), from->arguments);
}

struct kl_cudart_graph *kl_cudart_graph_copy(const struct kl_cudart_graph *g)
{
    struct kl_cudart_graph *copy = calloc(1, sizeof *copy);
    bool copied = copy;

    for (size_t i = 0; copied && i < g->nnodes; i++)
        copied = copy_node(copy, g->node[i]); /* what one waits for comes before it */
    if (copied) copy->kept = kl_cudart_kept_copy(g->kept);
    if (copied) return copy;
    kl_cudart_graph_free(copy);
    return NULL;
}

/* ---- what they do ---- */

cudaError_t kl_cudart_node_emit(const struct kl_cudart_node *n, cudaStream_t stream)
{
    switch (n->type) {
    case cudaGraphNodeTypeKernel: {
        const struct kl_cudart_launch launch = {.function = n->kernel.func,
                                                .grid = n->kernel.gridDim,
                                                .block = n->kernel.blockDim,
                                                .arguments = n->arguments,
                                                .shared_bytes = n->kernel.sharedMemBytes};
        return kl_cudart_launch(&launch, stream);
    }
    case cudaGraphNodeTypeMemcpy:
        return kl_cuda_copy(&n->box, n->copy_kind, stream, KL_CUDA_ASYNC);
    case cudaGraphNodeTypeMemset:
        return kl_cuda_fill(&n->box, n->fill_value, n->fill_element, stream, KL_CUDA_ASYNC);
    case cudaGraphNodeTypeHost:
        return kl_cuda_stream_call(stream, n->host.fn, NULL, n->host.userData);
    default:
        return cudaSuccess;
    }
}

/* ---- looked at ---- */

/* Of a captured graph only the number is known; its nodes get handles when somebody asks. */
static cudaError_t name_captured(struct kl_cudart_graph *g)
{
    size_t count;

    KL_CUDA_TRY(kl_cuda_from_kolo(koloGraphGetNodeCount(g->captured, &count), cudaErrorInvalidValue));
    while (g->nnodes < count)
        if (!kl_cudart_node_make(g, cudaGraphNodeTypeKernel)) return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    struct kl_cudart_graph *g = kl_cudart_graph(graph);
    cudaError_t rc = g && count && !g->capturing ? cudaSuccess : cudaErrorInvalidValue;

    if (!rc && g->captured) rc = name_captured(g);
    if (rc) return kl_cudart_done(rc);
    for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < g->nnodes ? g->node[i]->handle : NULL;
    if (!nodes || *count > g->nnodes) *count = g->nnodes;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphGetNodes);

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    const struct kl_cudart_node *n = find(node);

    if (!n || !type) return kl_cudart_done(cudaErrorInvalidValue);
    *type = n->type;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaGraphNodeGetType);
