/* SPDX-License-Identifier: Apache-2.0 */
/* Small collectives of GPUs that have a rank each: one kernel for each, which sends in lines and takes from lines (lines.cuh). */
#include "coll/gpu/flags.h"
#include "coll/gpu/mover.h"
#include "coll/gpu/names.h"

#include <stdio.h>

enum { WARP = 32 };

static bool serves(const struct kl_gpu_share *s)
{
    return kl_gpu_lines_fit(s->team, s->task, s->team->capture != 0);
}

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static int own_rank(const struct kl_gpu_share *s)
{
    int r = 0;

    while (!kl_gpu_is_own(s, r)) r++;
    return r;
}

static void set_places(const struct kl_gpu_share *s, struct kl_lines_job *j)
{
    const struct kl_gpu_team *team = s->team;

    j->epochs = kl_gpu_flags_epochs(team, s->worker);
    j->stop = team->flags->stop_at;
    j->units = team->flags->units;
    for (int r = 0; r < s->ranks; r++) {
        j->lines[r] = kl_gpu_flags_lines(team, s->worker, team->worker_of[r]);
        if (kl_task_reads(s->task, r)) j->senders |= (uint64_t)1 << r;
        if (kl_task_writes(s->task, r)) j->receivers |= (uint64_t)1 << r;
    }
}

static ncclResult_t launch(const struct kl_gpu_share *s, enum kl_kernel kernel, struct kl_lines_job *j)
{
    const struct kl_cuda_context *c = s->worker->context;
    const unsigned units = (unsigned)((j->bytes + KL_LINES_UNIT - 1) / KL_LINES_UNIT);
    void *arguments[] = {j};

    KL_CUDA_TRY(c->driver,
                cuLaunchKernel(c->function[kernel], (units + KL_LINES_BLOCK - 1) / KL_LINES_BLOCK, 1, 1,
                               units > WARP ? KL_LINES_BLOCK : WARP, 1, 1, 0, s->stream, arguments, NULL),
                "%s on device %d", kl_kernel_names[kernel], c->device);
    return ncclSuccess;
}

static ncclResult_t move(const struct kl_gpu_share *s)
{
    const int rank = own_rank(s);
    const struct kl_task *t = s->op[rank]->task;
    const struct kl_func_info *info = &kl_func_info[t->func];
    const size_t bytes = t->count * s->bytes;
    struct kl_lines_job j = {.send = address(t->send),
                             .recv = address(t->recv),
                             .send_stride = info->send_parts ? bytes : 0,
                             .recv_stride = info->recv_parts ? bytes : 0,
                             .bytes = bytes,
                             .ranks = (uint32_t)s->ranks,
                             .rank = (uint32_t)rank,
                             .divisor = (uint32_t)s->ranks};
    bool there = false;

    if (!bytes) return ncclSuccess;
    set_places(s, &j);
    if (!info->reduces) return launch(s, KL_KERNEL_lines_copy, &j);
    KL_TRY(kl_gpu_factor_of(s, rank, &j.factor, &there));
    j.factor_there = there;
    return launch(s, (enum kl_kernel)(KL_KERNEL_LINES + kl_kernel_of(t)), &j);
}

const struct kl_gpu_mover kl_gpu_mover_lines = {
    .name = "lines", .serves = serves, .move = move, .meets = true, .way = "in lines"};
