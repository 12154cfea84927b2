/* SPDX-License-Identifier: Apache-2.0 */
/**
 * relay.h - operations of GPUs without P2P between them: data go through pinned host memory that all of them map.
 *
 * Chunks:   each GPU copies the data of its ranks to their slots, by its copy engine, and takes the results from the slots
 *           of all: small operations by kernels that read host memory, larger ones by copy engines. A GPU has a stream for
 *           each direction, and each rank two slots, so that the copies of one chunk overlap with those of the next.
 * Sums:     kernels merge the slots of all ranks, in the order of ranks. From three GPUs on, large ones are reduced in
 *           slices, one for each GPU, and the result is copied from host memory.
 * Messages: within a process, in slots; between processes all of a message at once, in room of its own.
 * Order:    all workers meet between the steps: by events, and between processes by words in common memory. In graphs each
 *           step has words of its own, which are set to 1 and back.
 * Threads:  under the team's lock.
 */
#ifndef KL_COLL_GPU_RELAY_H
#define KL_COLL_GPU_RELAY_H

#include "coll/gpu/far.h"

struct kl_gpu_relay;

/** Bytes of memory that processes share for `nranks` ranks; zeroed at first, and allocated when touched. */
size_t kl_gpu_relay_bytes(int nranks, const struct kl_device_config *config);

/** The team's GPUs have no P2P. `memory`: the common memory; NULL: there is one process. */
ncclResult_t kl_gpu_relay_create(struct kl_gpu_team *team, int nprocesses, int own, void *memory,
                                 const struct kl_device_config *config);

/** Unless the team has `failed`, no stream uses it any more. */
void kl_gpu_relay_free(struct kl_gpu_team *team, bool failed);

/** The communicator has failed: no graph waits for other processes any longer. Any thread. */
void kl_gpu_relay_release_graphs(struct kl_gpu_relay *relay);

/** Has the stream on which this process meets others nothing left to do? Those of workers: drain.h. */
bool kl_gpu_relay_is_idle(const struct kl_gpu_team *team);

/** Nothing waits any longer for the word of this process. */
void kl_gpu_relay_raise(struct kl_gpu_relay *relay, int process);

/** Do data from one rank to the other go this way? */
static inline bool kl_gpu_is_relayed(const struct kl_gpu_team *team, int from, int to)
{
    return team->relay && team->worker_of[from] != team->worker_of[to];
}

/** Submit a collective of all ranks (submit.h), which was compared. */
ncclResult_t kl_gpu_relay_collective(struct kl_gpu_team *team, struct kl_gpu_op **op);

/** Submit a message within the process. */
ncclResult_t kl_gpu_relay_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv);

/** Choose room for a call's messages to other processes. ncclInvalidUsage: they are too large together. */
ncclResult_t kl_gpu_relay_reserve(struct kl_gpu_team *team, struct kl_gpu_call *call);

/** The worker's stream copies a message to its room, which the export handle names; or from there. Its context is current. */
ncclResult_t kl_gpu_relay_put(struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op,
                              struct kl_gpu_export_handle *exported);
ncclResult_t kl_gpu_relay_get(struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op,
                              const struct kl_gpu_export_handle *exported);

#endif
