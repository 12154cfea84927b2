/* SPDX-License-Identifier: Apache-2.0 */
/**
 * replay.h - a graph, ready to be queued as often as wanted.
 *
 * A launch queues all nodes: those of lane 0 on the stream that it is given, those of other lanes on streams of the replay, which begin
 * when that stream has come so far; that lane 0 waits for all others, the capture saw to. So launches of one replay, on
 * whatever streams, run one after the other when each begins after the end of the one before on its stream.
 *
 * Threads: any; launches and updates of one replay wait for each other's calls.
 */
#ifndef KL_DEVICE_HOST_REPLAY_H
#define KL_DEVICE_HOST_REPLAY_H

#include "device/host/recording.h"
#include "device/host/stream.h"

struct kl_replay;

ncclResult_t kl_replay_create(struct kl_recording *graph, struct kl_replay **replay);

/** Free it. What was launched runs, and holds the graph until it has. NULL is fine. */
void kl_replay_destroy(struct kl_replay *replay);

/** Queue it. What is wrong with a node is found before anything is queued. */
ncclResult_t kl_replay_launch(struct kl_replay *replay, struct kl_stream *stream);

/** Later launches are of `graph`, if that has the same shape; else ncclInvalidUsage, why, and at which node. */
ncclResult_t kl_replay_update(struct kl_replay *replay, struct kl_recording *graph, koloGraphUpdateResult_t *result,
                              uint32_t *node);

#endif
