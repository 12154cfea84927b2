/* SPDX-License-Identifier: Apache-2.0 */
/** branch.h - execution of a node with a condition: it reads the condition, and runs one of its graphs, once or in a loop. */
#ifndef KL_CUDART_BRANCH_H
#define KL_CUDART_BRANCH_H

#include "compat/cuda/runtime/condition.h"
#include "compat/cuda/runtime/step_list.h"

struct kl_cudart_branch;

/** Room for its graphs; NULL: memory is short. */
struct kl_cudart_branch *kl_cudart_branch_make(const struct cudaConditionalNodeParams *parameters);
void kl_cudart_branch_free(struct kl_cudart_branch *branch);

/** Set the steps of graph number i; takes ownership of them. */
void kl_cudart_branch_set(struct kl_cudart_branch *branch, size_t i, struct kl_cudart_steps steps);

/** Queue it on a stream that captures. It is the graph's then, or, on failure, gone. */
cudaError_t kl_cudart_branch_queue(struct kl_cudart_branch *branch, cudaStream_t stream);

#endif
