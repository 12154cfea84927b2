/* SPDX-License-Identifier: Apache-2.0 */
/** node.h - nodes of every kind, added to graphs by hand. Errors: 1 no such graph, or nodes; 801 it was captured. */
#ifndef KL_CUDART_NODE_H
#define KL_CUDART_NODE_H

#include "compat/cuda/runtime/graph.h"

/** Could a node behind these be added? */
cudaError_t kl_cudart_node_check(const struct kl_cudart_graph *graph, const cudaGraphNode_t *after, size_t count);

/** The work becomes the node's. */
cudaError_t kl_cudart_node_add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                               const struct kl_cudart_work *work);

/** The address is in the parameters then. */
cudaError_t kl_cudart_node_add_alloc(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, struct cudaMemAllocNodeParams *parameters);

/** Free memory that such a node, or a capture, has allocated, once. */
cudaError_t kl_cudart_node_add_free(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *ptr);

/** The graphs that it may run are in the parameters then. Errors: 1 also no such handle, or number of graphs. */
cudaError_t kl_cudart_node_add_condition(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                         size_t count, struct cudaConditionalNodeParams *parameters);

#endif
