/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order.h - the order of operations on streams of GPUs, within a process: by events. In several graphs (graphs.h) these do
 * nothing.
 *
 * Threads: under the team's lock.
 */
#ifndef KL_COLL_GPU_ORDER_H
#define KL_COLL_GPU_ORDER_H

#include "coll/gpu/team.h"

/** The worker's stream waits for the calls of `n` operations, and for the work of other GPUs for these calls. */
ncclResult_t kl_gpu_wait_for_all(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n);

/** All work of `n` operations on the worker has been submitted. */
ncclResult_t kl_gpu_record_end(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n);

/** Within a call, other GPUs may have collectives in work whose results an operation on this worker uses: wait for them. */
ncclResult_t kl_gpu_wait_for_workers(struct kl_gpu_team *team, struct kl_gpu_worker *w);

#endif
