/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that follow the schedules of host devices, hop by hop, with the plan of the communicator: one on each GPU. Their
 * blocks wait for each other, so all of them have to be resident.
 */
#include "coll/gpu/mover.h"

#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/gpu/names.h"
#include "coll/gpu/schedule_fit.h"
#include "coll/gpu/schedules.h"

#include <stdio.h>

enum { GRAIN_BYTES = 16 };

static bool serves(const struct kl_gpu_share *s)
{
    if (s->team->nranks == 1 || kl_func_is_message(s->task->func)) return false;
    return !kl_gpu_schedule_refusal(s->team, s->task, s->team->capture != 0);
}

void kl_gpu_schedule_log_refusal(const struct kl_gpu_share *s)
{
    if (s->team->mover != KL_CUDA_MOVER_SCHEDULE || s->team->nranks == 1) return;
    KL_INFO(KL_TUNING, "%s: %zu Bytes: no schedule on GPUs: %s", kl_func_info[s->task->func].name,
            s->task->count * s->bytes, kl_gpu_schedule_refusal(s->team, s->task, s->team->capture != 0));
}

/* ---- launches ---- */

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static ncclResult_t set_job(const struct kl_gpu_share *s, size_t scale, struct kl_gpu_job *j)
{
    j->ranks = (uint32_t)s->ranks;
    j->divisor = (uint32_t)s->ranks;
    j->count = s->task->count * scale;
    for (int r = 0; r < s->ranks; r++) { /* those of other processes mean nothing here */
        j->in[r] = address(s->op[r]->task->send);
        j->out[r] = address(s->op[r]->task->recv);
    }
    return kl_func_info[s->task->func].reduces ? kl_gpu_job_set_factors(s, j) : ncclSuccess;
}

/* `scale`: kernel elements of an element. */
static void set_cut(const struct kl_gpu_share *s, size_t scale, struct kl_gpu_schedule *to)
{
    const struct kl_partition *p = &s->task->choice.partition;
    const uint32_t line_bytes = kl_gpu_line_bytes((enum kl_proto)s->task->choice.proto);
    const size_t most = (line_bytes ? KL_LL_BYTES : s->team->schedules->chunk_bytes) / s->bytes;

    to->lo = p->lo * scale;
    to->mid = p->mid * scale;
    to->hi = p->hi * scale;
    to->most = most * scale;
    to->grain = GRAIN_BYTES / s->bytes;
    to->slots = KL_SLOTS;
    to->slot_bytes = kl_gpu_slot_bytes(line_bytes);
    to->line_bytes = line_bytes;
    to->slice = line_bytes ? to->most : KL_SLOT_BYTES / s->bytes * scale;
}

/* Its context is current. */
static ncclResult_t launch(const struct kl_gpu_share *s, int worker, unsigned threads, struct kl_gpu_schedule *work)
{
    struct kl_gpu_schedules *all = s->team->schedules;
    const struct kl_cuda_context *c = all->worker[worker].context;
    kl_cu_stream stream = s->team->worker[worker].stream;
    const enum kl_kernel kernel = kl_gpu_schedule_kernel(s->task);
    void *arguments[] = {work};

    KL_TRY(kl_gpu_schedules_await_memory(all, worker, stream));
    KL_TRY(kl_gpu_schedules_begin(all, worker, stream));
    KL_CUDA_TRY(c->driver,
                cuLaunchCooperativeKernel(c->function[kernel], (unsigned)all->worker[worker].nranks,
                                          (unsigned)s->task->choice.partition.nchannels, 1, threads, 1, 1, 0, stream,
                                          arguments),
                "%s on device %d", kl_kernel_names[kernel], c->device);
    return kl_gpu_schedules_end(all, worker, stream);
}

static void log_launch(const struct kl_gpu_share *s, unsigned threads)
{
    const struct kl_choice *c = &s->task->choice;

    KL_INFO(KL_TUNING, "%s: %zu Bytes: %s %s, %d channels, %d ranks on %d GPUs, blocks of %u threads",
            kl_func_info[s->task->func].name, s->task->count * s->bytes,
            kl_algo_name[kl_algorithms[c->algorithm]->algo], kl_proto_name[c->proto], c->partition.nchannels, s->ranks,
            s->team->nworkers, threads);
}

static ncclResult_t launch_all(const struct kl_gpu_share *s, const struct kl_gpu_programs *programs)
{
    struct kl_gpu_schedules *all = s->team->schedules;
    const size_t scale = kl_func_info[s->task->func].reduces ? 1 : s->bytes;
    const unsigned threads = kl_gpu_schedule_threads(all, s->task);
    struct kl_gpu_schedule work = {0};

    KL_TRY(set_job(s, scale, &work.job));
    set_cut(s, scale, &work);
    for (int w = 0; w < all->nworkers; w++) {
        const struct kl_cuda_context *c = all->worker[w].context;
        if (!c) continue;
        work.programs = programs->at[w];
        work.stop = all->worker[w].stop;
        KL_TRY(kl_cuda_enter(c));
        ncclResult_t rc = launch(s, w, threads, &work);
        kl_cuda_leave(c);
        KL_TRY(rc);
    }
    log_launch(s, threads);
    return ncclSuccess;
}

/* No other thread's kernels come in between. Memory is made before: that may wait for kernels, and for other processes. */
static ncclResult_t move_all(const struct kl_gpu_share *s)
{
    const struct kl_gpu_programs *programs;

    KL_TRY(kl_gpu_schedules_get(s->team->schedules, s->task, &programs));
    kl_gpu_schedules_lock();
    ncclResult_t rc = launch_all(s, programs);
    kl_gpu_schedules_unlock();
    return rc;
}

static ncclResult_t prepare(const struct kl_gpu_share *s, bool *there)
{
    const struct kl_gpu_programs *programs;

    KL_TRY(kl_gpu_schedules_get(s->team->schedules, s->task, &programs));
    *there = programs != NULL;
    return ncclSuccess;
}

const struct kl_gpu_mover kl_gpu_mover_schedule = {
    .name = "schedule", .serves = serves, .meets = true, .way = "hop by hop", .move_all = move_all, .prepare = prepare};
