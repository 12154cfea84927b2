/* SPDX-License-Identifier: Apache-2.0 */
/**
 * condition.h - values that kernels set, and nodes of graphs look at. A handle is the address of its value, which is all that kernels know.
 *
 * A condition lives as long as the graph that it was made for, and all that was made of it.
 * Threads: any.
 */
#ifndef KL_CUDART_CONDITION_H
#define KL_CUDART_CONDITION_H

#include "compat/cuda/core/state.h"
#include "compat/cuda/include/cuda_runtime_api.h"

struct kl_cudart_condition {
    _Atomic uint32_t value; /* first: its address is the handle */
    uint32_t initial;
    bool assigned; /* `initial`, when a launch begins */
    struct kl_cudart_condition *next;
};

/** NULL: no handle. */
struct kl_cudart_condition *kl_cudart_condition(cudaGraphConditionalHandle handle);

#endif
