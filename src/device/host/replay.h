/* SPDX-License-Identifier: Apache-2.0 */
/**
 * replay.h - an executable graph: a recording that can be launched any number of times.
 *
 * A launch queues all nodes: those of lane 0 on the given stream, those of other lanes on streams of the replay, which
 * begin when the given stream gets there; the capture ensured that lane 0 waits for all others. Launches of one replay
 * run one after the other if each is queued after the end of the previous one on its stream.
 *
 * Threads: any; launches and updates of one replay exclude each other.
 */
#ifndef KL_DEVICE_HOST_REPLAY_H
#define KL_DEVICE_HOST_REPLAY_H

#include "device/host/recording.h"
#include "device/host/stream.h"

struct kl_replay;

ncclResult_t kl_replay_create(struct kl_recording *graph, struct kl_replay **replay);

/** Free it. Launched work still runs, with a reference to the graph. NULL is fine. */
void kl_replay_destroy(struct kl_replay *replay);

/** Queue it. All nodes are checked before any is queued. */
ncclResult_t kl_replay_launch(struct kl_replay *replay, struct kl_stream *stream);

/**
 * Use `graph` for later launches, if it has the same shape; otherwise ncclInvalidUsage, with the reason and the node.
 */
ncclResult_t kl_replay_update(struct kl_replay *replay, struct kl_recording *graph, koloGraphUpdateResult_t *result,
                              uint32_t *node);

#endif
