/* SPDX-License-Identifier: Apache-2.0 */
/** executable.h - graphs that can be launched: a copy of a graph, and kolo's form of it. One thread at a time changes one. */
#ifndef KL_CUDART_EXECUTABLE_H
#define KL_CUDART_EXECUTABLE_H

#include "compat/cuda/runtime/graph.h"

/** The copy in an executable of a node that was made by hand. Errors: 1 there is none, 801 it was captured. */
cudaError_t kl_cudart_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node, struct kl_cudart_node **copy);

/** Such a copy has changed: later launches do that. When it cannot be queued so, this fails, and the change must be taken back. */
cudaError_t kl_cudart_exec_changed(cudaGraphExec_t exec, const struct kl_cudart_node *copy);

#endif
