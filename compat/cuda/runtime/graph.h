/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.h - graphs: captured ones are kolo's; graphs made by hand are lists of nodes that are captured when they are instantiated.
 *
 * Nodes made by hand run one after the other, in an order that their dependencies allow. Of captured graphs only the number of nodes
 * is known; they do not change, so copies share them.
 *
 * Threads: one at a time changes a graph, or its executable.
 */
#ifndef KL_CUDART_GRAPH_H
#define KL_CUDART_GRAPH_H

#include "compat/cuda/runtime/work.h"

#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/state.h"

struct kl_cudart_node {
    cudaGraphNode_t handle;
    cudaGraphNode_t of; /* that it is a copy of; NULL: none */
    struct kl_cudart_graph *graph;
    size_t number; /* in it */
    struct kl_cudart_work work;
    struct kl_cudart_node **after; /* its dependencies */
    size_t nafter;
    bool captured; /* the work is kolo's, and not known */
    bool disabled; /* in an executable: it is left out */
    /* while steps are made of its graph: */
    size_t looked_at;            /* number of visited dependencies */
    struct kl_cudart_node *then; /* waits for it */
    bool open, emitted;
};

struct kl_cudart_object; /* a user object: user_object.c */
struct kl_cudart_condition;

struct kl_cudart_reference {
    struct kl_cudart_object *object;
    unsigned count;
    struct kl_cudart_reference *next;
};

struct kl_cudart_captured {
    _Atomic uint64_t count; /* of graphs that have it */
    koloGraph_t own;
};

struct kl_cudart_graph {
    cudaGraph_t handle;       /* NULL: not exported */
    bool part;                /* of a node: not the program's to destroy */
    bool moved;               /* into that node: nor to be used as a whole */
    _Atomic uint64_t capture; /* the number of the running capture; 0: the graph is complete */
    cudaStream_t stream;      /* that began the capture */
    cudaGraph_t into;         /* it becomes a node of this graph then; NULL: of none */
    cudaGraphNode_t *behind;  /* these */
    size_t nbehind;
    struct kl_cudart_captured *captured;
    struct kl_cudart_node **node;
    size_t nnodes;
    struct kl_cudart_reference *kept;
    struct kl_cudart_condition **condition; /* the conditions with handles for it; kept */
    size_t nconditions;
};

/* ---- graphs ---- */

/** NULL: no graph, or one that is being captured. */
struct kl_cudart_graph *kl_cudart_graph(cudaGraph_t graph);

/** Also one that is being captured. */
static inline struct kl_cudart_graph *kl_cudart_graph_begun(cudaGraph_t graph)
{
    return kl_cuda_handle_find(KL_CUDA_GRAPH, graph);
}

struct kl_cudart_graph *kl_cudart_graph_make(void);
void kl_cudart_graph_free(struct kl_cudart_graph *graph);

/** Without a handle. NULL: memory is short. */
struct kl_cudart_graph *kl_cudart_graph_copy(const struct kl_cudart_graph *graph);

/** Give it a handle, if it has none. */
bool kl_cudart_graph_publish(struct kl_cudart_graph *graph);

/* ---- nodes ---- */

/** NULL: no node. */
struct kl_cudart_node *kl_cudart_node(cudaGraphNode_t node);

/** A node without work, NULL when memory is short. */
struct kl_cudart_node *kl_cudart_node_make(struct kl_cudart_graph *graph);
void kl_cudart_node_free(struct kl_cudart_node *node);

/** The node waits for another one. False: memory is short. */
bool kl_cudart_node_wait(struct kl_cudart_node *node, struct kl_cudart_node *after);

/** A captured graph gets its nodes' handles at the first query. */
cudaError_t kl_cudart_graph_name_captured(struct kl_cudart_graph *graph);

/* ---- objects that graphs keep ---- */

void kl_cudart_reference_release(struct kl_cudart_reference *list);

/** Call `destroy(ptr)` when the last reference is gone; the list has the first one. False: memory is short. */
bool kl_cudart_reference_own(struct kl_cudart_reference **list, void *ptr, void (*destroy)(void *ptr));

/** One more reference to each, in front of *list. False: memory is short, and the list may have some of them. */
bool kl_cudart_reference_copy(struct kl_cudart_reference **list, const struct kl_cudart_reference *of);

/** The same for all that a graph keeps, and the graphs that are its nodes. */
bool kl_cudart_reference_collect(struct kl_cudart_reference **list, const struct kl_cudart_graph *graph);

#endif
