/* SPDX-License-Identifier: Apache-2.0 */
/**
 * submit.h - one complete operation as work of the GPUs: participating workers, their dependencies, and the movers.
 *
 * Threads: under the team's lock.
 */
#ifndef KL_COLL_GPU_SUBMIT_H
#define KL_COLL_GPU_SUBMIT_H

#include "coll/gpu/team.h"

/** Get memory ready for the next collective, which all ranks have come to: entries of `op` as below. Not `*there`: call again. */
ncclResult_t kl_gpu_prepare_collective(struct kl_gpu_team *team, struct kl_gpu_op **op, bool *there);

/** A collective of all ranks, by rank; entries of ranks of other processes are filled in. */
ncclResult_t kl_gpu_submit_collective(struct kl_gpu_team *team, struct kl_gpu_op **op);

/**
 * Go on with a message to or from a rank of another process, the first in line between the two; `*over`: it is submitted.
 */
ncclResult_t kl_gpu_submit_far_message(struct kl_gpu_team *team, struct kl_gpu_op *op, bool *over);

/** A message within the process. */
ncclResult_t kl_gpu_submit_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv);

#endif
