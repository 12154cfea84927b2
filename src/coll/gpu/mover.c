/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/mover.h"

const struct kl_gpu_mover *const kl_gpu_movers[] = {
    [KL_CUDA_MOVER_AUTO] = &kl_gpu_mover_direct,
    [KL_CUDA_MOVER_DIRECT] = &kl_gpu_mover_direct,
    [KL_CUDA_MOVER_COPY] = &kl_gpu_mover_copy,
    NULL,
};

/* A copy engine moves a message as fast as a kernel and leaves the processors to the program; collectives read each buffer
 * once for all ranks. */
static enum kl_cuda_mover choose(int func)
{
    return kl_func_is_message(func) ? KL_CUDA_MOVER_COPY : KL_CUDA_MOVER_DIRECT;
}

const struct kl_gpu_mover *kl_gpu_mover_of(enum kl_cuda_mover wanted, const struct kl_gpu_share *s)
{
    const enum kl_cuda_mover mover = wanted == KL_CUDA_MOVER_AUTO ? choose(s->task->func) : wanted;

    return kl_gpu_movers[mover]->serves(s) ? kl_gpu_movers[mover] : &kl_gpu_mover_direct;
}

bool kl_gpu_is_own(const struct kl_gpu_share *s, int rank)
{
    return s->worker == &s->team->worker[s->team->worker_of[rank]];
}
