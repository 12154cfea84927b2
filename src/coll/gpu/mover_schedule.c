/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that follow the schedules of host devices, hop by hop, with the plan of the communicator: one on each GPU. Their
 * blocks wait for each other, so all of them have to be resident.
 */
#include "coll/gpu/mover.h"

#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/gpu/names.h"
#include "coll/gpu/schedules.h"

#include <stdio.h>

enum { MOST_THREADS = KL_JOB_THREADS, LEAST_THREADS = KL_ROW_LANES * KL_ROW_LEAST_THREADS, GRAIN_BYTES = 16 };

/* Without a reduction elements are bytes. */
static enum kl_kernel kernel_of(const struct kl_task *t)
{
    return (enum kl_kernel)(KL_KERNEL_SCHEDULES +
                            (int)(kl_func_info[t->func].reduces ? kl_kernel_of(t) : KL_KERNEL_u8_sum));
}

/* ---- does it serve? ---- */

/* Blocks of so many threads that a worker's GPU holds at once. */
static int room_for(struct kl_gpu_schedules *s, int worker, enum kl_kernel kernel, unsigned threads)
{
    const struct kl_cuda_context *c = s->worker[worker].context;
    int16_t *fit = &s->fit[worker][kernel][__builtin_ctz(threads / LEAST_THREADS)];
    int blocks = 0;

    if (*fit) return (*fit - 1) * c->processors;
    if (!kl_cuda_enter(c)) {
        if (c->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, c->function[kernel], (int)threads, 0))
            blocks = 0;
        kl_cuda_leave(c);
    }
    *fit = (int16_t)(blocks + 1);
    return blocks * c->processors;
}

/* Threads of a block, so that the blocks of all GPUs are resident; 0: there are too many. */
static unsigned threads_of(struct kl_gpu_schedules *s, const struct kl_task *t)
{
    const enum kl_kernel kernel = kernel_of(t);
    unsigned threads = MOST_THREADS;

    while (s->threads && threads > s->threads) threads /= 2;
    for (; threads >= LEAST_THREADS; threads /= 2) {
        bool fit = true;
        for (int w = 0; w < s->nworkers; w++)
            fit &= s->worker[w].nranks * t->choice.partition.nchannels <= room_for(s, w, kernel, threads);
        if (fit) return threads;
    }
    return 0;
}

static bool is_captured(const struct kl_gpu_share *s)
{
    return s->op[0]->call && s->op[0]->call->capture;
}

/* Why not; NULL: it does. */
static const char *refusal(const struct kl_gpu_share *s)
{
    const struct kl_gpu_team *team = s->team;
    const struct kl_task *t = s->task;

    if (team->far) return "the ranks are in several processes";
    if (team->relay) return "there is no P2P between the GPUs";
    if (t->func >= KL_FUNCS || !t->count) return "it has no schedule";
    if (!kl_algorithm_has_rows(t->choice.algorithm, t->choice.proto))
        return "the settings leave neither Ring, Tree nor PAT with Simple or LL";
    if (is_captured(s)) return "it is captured";
    if (team->nworkers > 1 && team->schedules->launches_block) return "CUDA_LAUNCH_BLOCKING is set";
    if (!threads_of(team->schedules, t)) return "its blocks are not resident together: see NCCL_MAX_NCHANNELS";
    return NULL;
}

/* Asked for the operation as a whole first, then for each worker. */
static bool serves(const struct kl_gpu_share *s)
{
    const char *why;

    if (s->team->nranks == 1 || kl_func_is_message(s->task->func)) return false;
    why = refusal(s);
    if (why && !s->worker)
        KL_INFO(KL_TUNING, "%s: %zu Bytes: no schedule on GPUs: %s", kl_func_info[s->task->func].name,
                s->task->count * s->bytes, why);
    return !why;
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
    for (int r = 0; r < s->ranks; r++) {
        j->in[r] = address(s->op[r]->task->send);
        j->out[r] = address(s->op[r]->task->recv);
    }
    return kl_func_info[s->task->func].reduces ? kl_gpu_job_set_factors(s, j) : ncclSuccess;
}

/* `scale`: kernel elements of an element. */
static void set_cut(const struct kl_gpu_share *s, size_t scale, struct kl_gpu_schedule *to)
{
    const struct kl_partition *p = &s->task->choice.partition;
    const bool lines = s->task->choice.proto != KL_PROTO_SIMPLE;
    const size_t most = (lines ? KL_LL_BYTES : s->team->schedules->chunk_bytes) / s->bytes;

    to->lo = p->lo * scale;
    to->mid = p->mid * scale;
    to->hi = p->hi * scale;
    to->most = most * scale;
    to->grain = GRAIN_BYTES / s->bytes;
    to->slots = KL_SLOTS;
    to->slot_bytes = kl_gpu_slot_bytes(lines);
    to->lines = lines;
    to->slice = lines ? to->most : KL_SLOT_BYTES / s->bytes * scale;
}

/* Its context is current. */
static ncclResult_t launch(const struct kl_gpu_share *s, int worker, unsigned threads, struct kl_gpu_schedule *work)
{
    struct kl_gpu_schedules *all = s->team->schedules;
    const struct kl_cuda_context *c = all->worker[worker].context;
    kl_cu_stream stream = s->team->worker[worker].stream;
    const enum kl_kernel kernel = kernel_of(s->task);
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

static ncclResult_t launch_all(const struct kl_gpu_share *s)
{
    struct kl_gpu_schedules *all = s->team->schedules;
    const size_t scale = kl_func_info[s->task->func].reduces ? 1 : s->bytes;
    const unsigned threads = threads_of(all, s->task);
    const struct kl_gpu_programs *programs;
    struct kl_gpu_schedule work = {0};

    KL_TRY(kl_gpu_schedules_get(all, s->task, &programs));
    KL_TRY(set_job(s, scale, &work.job));
    set_cut(s, scale, &work);
    for (int w = 0; w < all->nworkers; w++) {
        const struct kl_cuda_context *c = all->worker[w].context;
        work.programs = programs->at[w];
        work.stop = all->worker[w].stop;
        KL_TRY(kl_cuda_enter(c));
        ncclResult_t rc = launch(s, w, threads, &work);
        kl_cuda_leave(c);
        KL_TRY(rc);
    }
    KL_INFO(KL_TUNING, "%s: %zu Bytes: %d channels, %d ranks on %d GPUs, blocks of %u threads",
            kl_func_info[s->task->func].name, s->task->count * s->bytes, s->task->choice.partition.nchannels, s->ranks,
            all->nworkers, threads);
    return ncclSuccess;
}

/* No other thread's kernels come in between. */
static ncclResult_t move_all(const struct kl_gpu_share *s)
{
    kl_gpu_schedules_lock();
    ncclResult_t rc = launch_all(s);
    kl_gpu_schedules_unlock();
    return rc;
}

const struct kl_gpu_mover kl_gpu_mover_schedule = {.name = "schedule", .serves = serves, .move_all = move_all};
