/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graphs.h - operations that ranks of one process capture into several graphs: a graph for each rank, or for some.
 *
 * Streams:  each GPU's work is captured on the stream of the first rank there, in place of the team's stream, which can be
 *           part of one graph only; so a graph's part of an operation is a chain on the program's own streams.
 * Order:    the ranks of a graph wait for each other by events, graphs by words in pinned memory, which one stream sets to
 *           1 and the other one back. All graphs come to the leader's, which lets the GPUs begin, and lets all go on.
 * Replays:  all graphs have to be launched alike, on streams of their own.
 * Failure:  kl_gpu_graphs_release ends the waits.
 * Threads:  under the team's lock, but kl_gpu_graphs_join and kl_gpu_graphs_release.
 */
#ifndef KL_COLL_GPU_GRAPHS_H
#define KL_COLL_GPU_GRAPHS_H

#include "coll/gpu/team.h"

struct kl_gpu_graphs;

ncclResult_t kl_gpu_graphs_create(struct kl_gpu_team *team);

/** Unless the team has `failed`, no stream uses their memory any more. */
void kl_gpu_graphs_free(struct kl_gpu_team *team, bool failed);

/**
 * Operations that are captured: do own ranks capture several graphs, or is a stream of one of the workers in another
 * graph?
 */
bool kl_gpu_graphs_are_needed(const struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n, uint64_t workers);

/**
 * Each worker takes the stream of the first of these operations whose rank is there; kl_gpu_graphs_leave gives its own
 * back. ncclInvalidUsage: a stream has another meaning in other threads.
 */
ncclResult_t kl_gpu_graphs_enter(struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n);
void kl_gpu_graphs_leave(struct kl_gpu_team *team);

/** Of a collective: all graphs come to the leader's stream; and go on behind it. */
ncclResult_t kl_gpu_graphs_gather(struct kl_gpu_team *team);
ncclResult_t kl_gpu_graphs_let_go(struct kl_gpu_team *team);

/** These workers wait for the leader's stream; it waits for them. */
ncclResult_t kl_gpu_graphs_spread(struct kl_gpu_team *team, uint64_t workers);
ncclResult_t kl_gpu_graphs_collect(struct kl_gpu_team *team, uint64_t workers);

/** The stream of one own rank's call waits for the stream of another one's. */
ncclResult_t kl_gpu_graphs_pass(struct kl_gpu_team *team, struct kl_gpu_call *from, struct kl_gpu_call *to);

/** All streams of a call go on behind its first one. Its context is current. */
ncclResult_t kl_gpu_graphs_join(const struct kl_gpu_team *team, const struct kl_gpu_call *call);

/** The communicator has failed: no stream waits any longer. Any thread. */
void kl_gpu_graphs_release(struct kl_gpu_team *team);

#endif
