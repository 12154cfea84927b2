/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/schedule_fit.h"

#include "coll/algorithms/algorithms.h"
#include "coll/gpu/flags.h"
#include "coll/gpu/names.h"
#include "coll/gpu/nvls.h"

#include <limits.h>

enum { MOST_THREADS = KL_JOB_THREADS, LEAST_THREADS = KL_ROW_LANES * KL_ROW_LEAST_THREADS };

/* Without a reduction elements are bytes. */
enum kl_kernel kl_gpu_schedule_kernel(const struct kl_task *t)
{
    return (enum kl_kernel)(KL_KERNEL_SCHEDULES +
                            (int)(kl_func_info[t->func].reduces ? kl_kernel_of(t) : KL_KERNEL_u8_sum));
}

/* Blocks that a context's GPU holds at once; the context is current. */
static int blocks_of(const struct kl_cuda_context *c, enum kl_kernel kernel, unsigned threads)
{
    int blocks = 0;

    if (c->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, c->function[kernel], (int)threads, 0)) return 0;
    return blocks * c->processors;
}

int kl_gpu_schedule_room(const struct kl_cuda_context *c)
{
    int room = INT_MAX;

    for (int k = KL_KERNEL_schedule_u8_sum; k < KL_KERNEL_SCHEDULES_END; k++) {
        const int blocks = blocks_of(c, (enum kl_kernel)k, LEAST_THREADS);
        if (blocks < room) room = blocks;
    }
    return room;
}

/* ---- is it legal? ---- */

static bool fits(const struct kl_gpu_schedules *s, const struct kl_task *t)
{
    for (int w = 0; w < s->nworkers; w++)
        if (s->worker[w].nranks * t->choice.partition.nchannels > s->worker[w].room) return false;
    return true;
}

const char *kl_gpu_schedule_refusal(const struct kl_gpu_team *team, const struct kl_task *t, bool captured)
{
    const struct kl_gpu_schedules *s = team->schedules;

    if (team->relay) return "there is no P2P between the GPUs";
    if (!s) return "a GPU has ranks of several processes, whose kernels do not run at once";
    if (t->func >= KL_FUNCS || !t->count) return "it has no schedule";
    if (!kl_algorithm_has_rows(t->choice.algorithm)) return "the settings leave neither Ring, Tree nor PAT";
    if (captured) return "it is captured";
    if (s->launches_block) return "CUDA_LAUNCH_BLOCKING is set";
    return fits(s, t) ? NULL : "its blocks are not resident together: see NCCL_MAX_NCHANNELS";
}

bool kl_gpu_uses_own_buffers(const struct kl_gpu_team *team, const struct kl_task *t, bool captured)
{
    if (kl_gpu_lines_fit(team, t, captured)) return true;
    if (team->nvls && !kl_gpu_nvls_refusal(team, t, captured)) return true;
    return team->schedules && !kl_func_is_message(t->func) && !kl_gpu_schedule_refusal(team, t, captured);
}

/* ---- blocks ---- */

static int room_for(struct kl_gpu_schedules *s, int worker, enum kl_kernel kernel, unsigned threads)
{
    const struct kl_cuda_context *c = s->worker[worker].context;
    int32_t *fit = &s->fit[worker][kernel - KL_KERNEL_schedule_u8_sum][__builtin_ctz(threads / LEAST_THREADS)];

    if (!*fit && !kl_cuda_enter(c)) {
        *fit = blocks_of(c, kernel, threads) + 1;
        kl_cuda_leave(c);
    }
    return *fit - 1;
}

unsigned kl_gpu_schedule_threads(struct kl_gpu_schedules *s, const struct kl_task *t)
{
    const enum kl_kernel kernel = kl_gpu_schedule_kernel(t);
    unsigned threads = MOST_THREADS;

    while (s->threads && threads > s->threads) threads /= 2;
    for (; threads > LEAST_THREADS; threads /= 2) {
        bool fit = true;
        for (int w = 0; w < s->nworkers; w++)
            fit &= !s->worker[w].context ||
                   s->worker[w].nranks * t->choice.partition.nchannels <= room_for(s, w, kernel, threads);
        if (fit) return threads;
    }
    return LEAST_THREADS;
}
