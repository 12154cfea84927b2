/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/mover.h"

/* By enum kl_cuda_mover. */
static const struct kl_gpu_mover *const movers[] = {
    [KL_CUDA_MOVER_AUTO] = &kl_gpu_mover_direct,       [KL_CUDA_MOVER_DIRECT] = &kl_gpu_mover_direct,
    [KL_CUDA_MOVER_COPY] = &kl_gpu_mover_copy,         [KL_CUDA_MOVER_LINES] = &kl_gpu_mover_lines,
    [KL_CUDA_MOVER_SCHEDULE] = &kl_gpu_mover_schedule, [KL_CUDA_MOVER_NVLS] = &kl_gpu_mover_nvls,
};

/* A copy engine moves a message as fast as a kernel and leaves the processors to the program; collectives read each buffer
 * once for all ranks, but small ones need no meetings in lines. */
static enum kl_cuda_mover choose(const struct kl_gpu_share *s)
{
    if (kl_gpu_mover_lines.serves(s)) return KL_CUDA_MOVER_LINES;
    return kl_func_is_message(s->task->func) ? KL_CUDA_MOVER_COPY : KL_CUDA_MOVER_DIRECT;
}

const struct kl_gpu_mover *kl_gpu_mover_of(enum kl_cuda_mover wanted, const struct kl_gpu_share *s)
{
    const enum kl_cuda_mover mover = wanted == KL_CUDA_MOVER_AUTO ? choose(s) : wanted;

    return movers[mover]->serves(s) ? movers[mover] : &kl_gpu_mover_direct;
}
