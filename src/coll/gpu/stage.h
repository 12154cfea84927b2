/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stage.h - memory of a rank's GPU that other processes can map, in place of buffers that they cannot map: of memory pools
 * (cudaMallocAsync), of cuMemCreate, managed and pinned memory.
 *
 * Order:    one stream copies to and from a stage: for collectives the stream of the process's leader, for messages the
 *           sender's. A stage is used again behind the work of other processes, for which that stream waits.
 * Sizes:    a stage that is too small is replaced; it is freed with the team, as streams and graphs may use it. Each graph
 *           has stages of its own.
 * Errors:   no memory for a stage: ncclUnhandledCudaError, before anything has changed.
 * Threads:  kl_gpu_stage_reserve: the rank's; the others under the team's lock.
 */
#ifndef KL_COLL_GPU_STAGE_H
#define KL_COLL_GPU_STAGE_H

#include "coll/gpu/far.h"

/** Choose the stages of a call's buffers that other processes need and cannot map. The rank's context is current. */
ncclResult_t kl_gpu_stage_reserve(struct kl_gpu_team *team, struct kl_gpu_call *call);

/** Does the operation have a stage for its result; for its other buffers; for any? */
static inline bool kl_gpu_stage_has_result(const struct kl_gpu_op *op)
{
    return op->stage[KL_GPU_RECV].bytes;
}

static inline bool kl_gpu_stage_has_input(const struct kl_gpu_op *op)
{
    return op->stage[KL_GPU_SEND].bytes || op->stage[KL_GPU_FACTOR].bytes;
}

static inline bool kl_gpu_stage_exists(const struct kl_gpu_op *op)
{
    return kl_gpu_stage_has_result(op) || kl_gpu_stage_has_input(op);
}

/** The worker's stream copies an operation's data to its stages, or its result from there. */
ncclResult_t kl_gpu_stage_in(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op);
ncclResult_t kl_gpu_stage_out(const struct kl_gpu_team *team, const struct kl_gpu_worker *w,
                              const struct kl_gpu_op *op);

/** A collective, by rank: replace own operations that have stages by ones on the stages. */
void kl_gpu_stage_use(struct kl_gpu_team *team, struct kl_gpu_op **op);

#endif
