/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schedules.h - schedules for the kernels that follow them, in memory of a team's GPUs: programs of rows, and fifos between
 * ranks. Both are made when an operation first needs them, and kept as long as the team.
 *
 * Failure: the stop word ends all kernels. After one, memory stays until they have ended.
 * Threads: kl_gpu_schedules_stop: any; the others one at a time.
 */
#ifndef KL_COLL_GPU_SCHEDULES_H
#define KL_COLL_GPU_SCHEDULES_H

#include "coll/gpu/schedule_state.h"

/** Are they wanted, and legal, in a team whose GPUs have P2P? The same answer in all processes. */
bool kl_gpu_schedules_are_wanted(const struct kl_gpu_team *team);

/** `offers`: NULL if there is one process. Blocking: until all processes have come here (kl_gpu_offers_await). */
ncclResult_t kl_gpu_schedules_create(const struct kl_gpu_team *team, const struct kl_gpu_setup *setup,
                                     struct kl_gpu_offers *offers, struct kl_gpu_schedules **schedules);

/** Kernels end. */
void kl_gpu_schedules_stop(struct kl_gpu_schedules *schedules);

/** NULL is fine. `failed`: kernels may still run. Else waits, with a limit, for other processes' kernels to say their last. */
void kl_gpu_schedules_free(struct kl_gpu_schedules *schedules, bool failed);

/** The programs of a task with a plan that has rows; NULL: other processes have not made memory for it, so call again. */
ncclResult_t kl_gpu_schedules_get(struct kl_gpu_schedules *schedules, const struct kl_task *task,
                                  const struct kl_gpu_programs **programs);

/** Has the rank's process not made the memory that was asked for last? */
bool kl_gpu_schedules_lack(const struct kl_gpu_schedules *schedules, int rank);

/** The worker's stream waits until all workers' memory is filled. Its context is current. */
ncclResult_t kl_gpu_schedules_await_memory(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);

/** Kernels of schedules on a GPU come one after the other, of all teams alike, so that those that wait for each other meet. */
void kl_gpu_schedules_lock(void);
void kl_gpu_schedules_unlock(void);

/** Under that lock: before and after a worker's kernel. Its context is current. */
ncclResult_t kl_gpu_schedules_begin(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);
ncclResult_t kl_gpu_schedules_end(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);

#endif
