/* SPDX-License-Identifier: Apache-2.0 */
/**
 * steps.h - the steps that a launch of an executable queues in order: graphs of kolo's, and events to record or to wait for.
 *
 * Threads: one at a time.
 */
#ifndef KL_CUDART_STEPS_H
#define KL_CUDART_STEPS_H

#include "compat/cuda/runtime/graph.h"
#include "compat/cuda/runtime/step_list.h"

/** On failure there is none. */
cudaError_t kl_cudart_steps_build(struct kl_cudart_steps *steps, const struct kl_cudart_graph *graph);

/** Can this node alone be queued? */
cudaError_t kl_cudart_steps_try(const struct kl_cudart_node *node);
cudaError_t kl_cudart_steps_launch(const struct kl_cudart_steps *steps, cudaStream_t stream);

/** Launched steps still run. */
void kl_cudart_steps_free(struct kl_cudart_steps *steps);

#endif
