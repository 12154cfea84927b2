/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that NVLink's switches reduce, or write to all GPUs: one kernel on each GPU (nvls.cuh). */
#include "coll/gpu/mover.h"

#include "base/log.h"
#include "coll/gpu/names.h"
#include "coll/gpu/nvls.h"

#include <stdio.h>

enum {
    WARP = 32,
    LEAST = 16 << 10 /* bytes for which a further block is not worth its meetings */
};

static bool serves(const struct kl_gpu_share *s)
{
    return !kl_gpu_nvls_refusal(s->team, s->task, s->team->capture != 0);
}

void kl_gpu_nvls_log_refusal(const struct kl_gpu_share *s)
{
    if (s->team->mover != KL_CUDA_MOVER_NVLS || s->team->nranks == 1) return;
    KL_INFO(KL_TUNING | KL_NVLS, "%s: %zu bytes: no NVLS: %s", kl_func_info[s->task->func].name,
            s->task->count * s->bytes, kl_gpu_nvls_refusal(s->team, s->task, s->team->capture != 0));
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

static uint64_t divide(uint64_t bytes, uint64_t by)
{
    return (bytes + by - 1) / by;
}

/* Chunks as large as rooms allow, or as the blocks that the operation is worth: alike on all GPUs. Returns the blocks. */
static unsigned cut(const struct kl_gpu_nvls *n, struct kl_nvls_job *j)
{
    const uint64_t room = j->spread ? KL_NVLS_ROOM / 2 : KL_NVLS_ROOM;
    const uint64_t most = room / j->parts / KL_NVLS_UNIT * KL_NVLS_UNIT;
    const uint64_t worth = divide(j->bytes * j->parts, LEAST), blocks = worth < n->blocks ? worth : n->blocks;
    const uint64_t wanted = divide(divide(j->bytes, blocks), KL_NVLS_UNIT) * KL_NVLS_UNIT;

    j->piece = wanted < most ? wanted : most;
    const uint64_t chunks = divide(j->bytes, j->piece);
    return (unsigned)(chunks < blocks ? chunks : blocks);
}

/* One for each unit of a chunk, in whole warps. */
static unsigned threads_of(const struct kl_gpu_nvls *n, const struct kl_nvls_job *j)
{
    const uint64_t wanted = divide(divide(j->piece, KL_NVLS_UNIT), WARP) * WARP;

    return wanted < n->threads ? (unsigned)wanted : n->threads / WARP * WARP;
}

static ncclResult_t launch(const struct kl_gpu_share *s, enum kl_kernel kernel, struct kl_nvls_job *j)
{
    const struct kl_cuda_context *c = s->worker->context;
    const unsigned blocks = cut(s->team->nvls, j);
    void *arguments[] = {j};

    KL_CUDA_TRY(c->driver,
                cuLaunchKernel(c->function[kernel], blocks, 1, 1, threads_of(s->team->nvls, j), 1, 1, 0, s->stream,
                               arguments, NULL),
                "%s on device %d", kl_kernel_names[kernel], c->device);
    return ncclSuccess;
}

static ncclResult_t move(const struct kl_gpu_share *s)
{
    const int rank = own_rank(s);
    const struct kl_task *t = s->op[rank]->task;
    const struct kl_func_info *info = &kl_func_info[t->func];
    const bool in_parts = info->send_parts || info->recv_parts;
    struct kl_nvls_job j = {.send = kl_task_reads(t, rank) ? address(t->send) : 0,
                            .recv = kl_task_writes(t, rank) ? address(t->recv) : 0,
                            .bytes = t->count * s->bytes,
                            .ranks = (uint32_t)s->ranks,
                            .rank = (uint32_t)rank,
                            .parts = in_parts ? (uint32_t)s->ranks : 1,
                            .part = in_parts ? (uint32_t)rank : 0,
                            .spread = t->func == KL_FUNC_ALL_REDUCE,
                            .divisor = (uint32_t)s->ranks};
    bool there = false;

    if (!j.bytes) return ncclSuccess;
    kl_gpu_nvls_set(s->team, (int)(s->worker - s->team->worker), &j);
    if (!info->reduces) return launch(s, KL_KERNEL_nvls_copy, &j);
    KL_TRY(kl_gpu_factor_of(s, rank, &j.factor, &there));
    j.factor_there = there;
    return launch(s, kl_nvls_kernel_of(t), &j);
}

const struct kl_gpu_mover kl_gpu_mover_nvls = {
    .name = "nvls", .serves = serves, .move = move, .meets = true, .way = "over a multicast object"};
