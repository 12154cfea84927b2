/* SPDX-License-Identifier: Apache-2.0 */
/** step_list.h - a list of steps (steps.h). */
#ifndef KL_CUDART_STEP_LIST_H
#define KL_CUDART_STEP_LIST_H

#include "compat/cuda/core/state.h"

struct kl_cudart_step {
    koloGraphExec_t graph; /* NULL: an event */
    cudaEvent_t event;
    bool waits; /* for it; else it is recorded */
};

struct kl_cudart_steps {
    struct kl_cudart_step *step;
    size_t n;
};

#endif
