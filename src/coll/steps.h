/* SPDX-License-Identifier: Apache-2.0 */
/** steps.h - a callback for every step of an operation (a trace). Usually there is none: then it costs one
 * comparison. */
#ifndef KL_COLL_STEPS_H
#define KL_COLL_STEPS_H

#include <stddef.h>
#include <stdint.h>

/** A hop that has been done: data came from some ranks, were combined, kept, sent to others. */
struct kl_step {
    int channel;
    int from, to; /* the first rank of each; -1: none */
    size_t bytes;
    uint64_t begun; /* ticks */
};

struct kl_step_watch {
    void (*step)(void *ctx, const struct kl_step *step);
    void *ctx;
};

#endif
