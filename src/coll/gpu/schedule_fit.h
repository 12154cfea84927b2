/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schedule_fit.h - which collectives kernels follow schedules for (KOLO_CUDA_MOVER=schedule), and with how many threads.
 *
 * Threads: any; kl_gpu_schedule_threads: as schedules.h.
 */
#ifndef KL_COLL_GPU_SCHEDULE_FIT_H
#define KL_COLL_GPU_SCHEDULE_FIT_H

#include "coll/gpu/schedule_state.h"

/** Why kernels cannot follow one; NULL: they can. The same answer in all processes. */
const char *kl_gpu_schedule_refusal(const struct kl_gpu_team *team, const struct kl_task *task, bool captured);

/** Does each GPU use the buffers of its own ranks only, as all that travels goes through lines, fifos or a multicast object? */
bool kl_gpu_uses_own_buffers(const struct kl_gpu_team *team, const struct kl_task *task, bool captured);

/** The kernel of a collective. */
enum kl_kernel kl_gpu_schedule_kernel(const struct kl_task *task);

/** Threads of a block, so that the blocks of a collective that is not refused are resident on all GPUs of this process. */
unsigned kl_gpu_schedule_threads(struct kl_gpu_schedules *schedules, const struct kl_task *task);

/** Blocks of the fewest threads that a GPU holds at once, whichever the kernel. Its context is current. */
int kl_gpu_schedule_room(const struct kl_cuda_context *context);

#endif
