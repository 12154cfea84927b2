/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profile.h - events of a profiler for an operation that runs: a kernel on each channel, and proxy operations on the edges of a
 * network (transport/net/profile.h). Parents are the events of the calls, which the communicator starts.
 *
 * Threads: the runner's.
 */
#ifndef KL_COLL_ENGINE_PROFILE_H
#define KL_COLL_ENGINE_PROFILE_H

#include "coll/pipeline/algorithm.h"
#include "os/profiler.h"

struct kl_exec_profile {
    const struct kl_profiler *profiler; /* NULL: none; then nothing below is called */
    void *parent;                       /* handle of the collective that begins */
    struct kl_profile_event kernel[KL_MAX_CHANNELS];
};

/** A collective begins on a channel, and is complete there. `op`: its memory. */
void kl_exec_profile_begin(struct kl_exec_profile *profile, int channel, const struct kl_algorithm *algorithm, void *op,
                           struct kl_edges *edges, const struct kl_channel_work *share);
void kl_exec_profile_end(struct kl_exec_profile *profile, int channel, const struct kl_edges *edges);

/** The same of one message, whose event has the handle `parent`. */
void kl_exec_profile_message_begin(const struct kl_profiler *profiler, void *parent, struct kl_connector *connector);
void kl_exec_profile_message_end(const struct kl_connector *connector);

#endif
