/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.h - graphs: captured ones are kolo's; those made by hand are lists of nodes that are captured when they are instantiated.
 *
 * Nodes made by hand run one after the other, in an order that their dependencies allow.
 * Threads: one at a time changes a graph.
 */
#ifndef KL_CUDART_GRAPH_H
#define KL_CUDART_GRAPH_H

#include "compat/cuda/core/copy.h"
#include "compat/cuda/core/state.h"

struct kl_cudart_node {
    cudaGraphNode_t handle;
    struct kl_cudart_graph *graph;
    enum cudaGraphNodeType type;
    struct kl_cudart_node **after; /* what it waits for */
    size_t nafter;
    struct cudaKernelNodeParams kernel; /* kernelParams: `arguments` */
    void **arguments;
    void *packed; /* what they point to */
    struct kl_cuda_box box;
    int copy_kind;
    unsigned fill_value;
    int fill_element;
    struct cudaHostNodeParams host;
    struct kl_cudart_graph *child;
    bool emitted;
};

struct kl_cudart_object; /* a user object: user_object.c */

struct kl_cudart_kept {
    struct kl_cudart_object *object;
    unsigned count;
    struct kl_cudart_kept *next;
};

struct kl_cudart_graph {
    cudaGraph_t handle;  /* NULL: a child's copy */
    bool capturing;      /* not there yet */
    uint64_t capture;    /* of this number */
    cudaStream_t stream; /* that began it */
    koloGraph_t captured;
    struct kl_cudart_node **node;
    size_t nnodes;
    struct kl_cudart_kept *kept;
};

/** NULL: no graph. */
struct kl_cudart_graph *kl_cudart_graph(cudaGraph_t graph);

struct kl_cudart_graph *kl_cudart_graph_make(void);
void kl_cudart_graph_free(struct kl_cudart_graph *graph);
struct kl_cudart_graph *kl_cudart_graph_copy(const struct kl_cudart_graph *graph);

/** A node, by hand or of a capture, NULL when memory is short. */
struct kl_cudart_node *kl_cudart_node_make(struct kl_cudart_graph *graph, enum cudaGraphNodeType type);
void kl_cudart_node_free(struct kl_cudart_node *node);

/** Queue what a node does on a stream that captures. Not of child graphs. */
cudaError_t kl_cudart_node_emit(const struct kl_cudart_node *node, cudaStream_t stream);

/** Objects that graphs keep. */
void kl_cudart_kept_release(struct kl_cudart_kept *list);
struct kl_cudart_kept *kl_cudart_kept_copy(const struct kl_cudart_kept *list);

#endif
