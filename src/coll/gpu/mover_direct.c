/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that read the buffers of all ranks and write all results: one for each GPU and operation. */
#include "coll/gpu/mover.h"

#include "coll/gpu/far.h"
#include "coll/gpu/names.h"

#include <stdio.h>
#include <string.h>

enum { UNIT = 16, BLOCKS_PER_PROCESSOR = 4 };

static bool serves(const struct kl_gpu_share *s)
{
    (void)s;
    return true;
}

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

/* ---- launches ---- */

/* The largest power of two, up to 16, that all addresses and the stride are multiples of. */
static uint32_t unit_of(const struct kl_gpu_job *j, int ranks)
{
    uint64_t all = j->stride | UNIT;

    for (int r = 0; r < ranks; r++) all |= j->in[r] | j->out[r];
    return (uint32_t)(all & -all);
}

/* Enough blocks for the work, and no more than fill the GPU. */
static unsigned blocks_of(const struct kl_gpu_share *s, uint64_t bytes, unsigned parts)
{
    const unsigned limit =
        s->team->blocks ? s->team->blocks : BLOCKS_PER_PROCESSOR * (unsigned)s->worker->context->processors;
    const uint64_t units = (bytes + s->team->job.unit - 1) / s->team->job.unit;
    const uint64_t wanted = (units + KL_JOB_THREADS - 1) / KL_JOB_THREADS, most = limit / parts ? limit / parts : 1;

    return (unsigned)(wanted < most ? wanted : most);
}

ncclResult_t kl_gpu_job_launch(const struct kl_gpu_share *s, enum kl_kernel kernel, size_t elem_bytes, unsigned parts,
                               unsigned destinations)
{
    struct kl_gpu_job *j = &s->team->job;
    void *arguments[] = {j};
    const struct kl_cuda_context *c = s->worker->context;

    if (!j->count) return ncclSuccess;
    j->unit = unit_of(j, (int)j->ranks);
    const unsigned blocks = blocks_of(s, j->count * elem_bytes, parts * destinations);
    KL_CUDA_TRY(c->driver,
                cuLaunchKernel(c->function[kernel], blocks, parts, destinations, KL_JOB_THREADS, 1, 1, 0, s->stream,
                               arguments, NULL),
                "%s on device %d", kl_kernel_names[kernel], c->device);
    return ncclSuccess;
}

struct kl_gpu_job *kl_gpu_job_clear(const struct kl_gpu_share *s)
{
    struct kl_gpu_job *j = &s->team->job;

    memset(j, 0, sizeof *j);
    j->ranks = (uint32_t)s->ranks;
    j->divisor = (uint32_t)s->team->nranks;
    if (s->team->far) j->over = kl_gpu_far_over_at(s->team->far);
    return j;
}

/* ---- reductions ---- */

/* As the kernel reads it: kl_redop has the factors of floats in the type that they are computed in. */
static uint64_t bits_of_factor(const struct kl_redop *redop, ncclDataType_t type)
{
    uint64_t bits = redop->factor;

    if (type == ncclFloat64)
        memcpy(&bits, &redop->scale_wide, sizeof redop->scale_wide);
    else if (type >= ncclFloat16)
        memcpy(&bits, &redop->scale, sizeof redop->scale);
    return bits;
}

ncclResult_t kl_gpu_factor_of(const struct kl_gpu_share *s, int rank, uint64_t *factor, bool *there)
{
    const struct kl_task *t = s->op[rank]->task;
    struct kl_redop mean;

    *there = t->scalar;
    *factor = address(t->scalar);
    if (t->scalar) return ncclSuccess;
    if (!t->redop) KL_TRY(kl_redop_init(&mean, t->type, ncclAvg, s->ranks));
    *factor = bits_of_factor(t->redop ? t->redop : &mean, t->type);
    return ncclSuccess;
}

ncclResult_t kl_gpu_job_set_factors(const struct kl_gpu_share *s, struct kl_gpu_job *j)
{
    bool there;

    for (int r = 0; r < s->ranks; r++) {
        KL_TRY(kl_gpu_factor_of(s, r, &j->scale[r], &there));
        if (there) j->scale_there[r / 64] |= (uint64_t)1 << r % 64;
    }
    return ncclSuccess;
}

/* This worker's slice, of whole units: elements [*first, *first + *count). */
static void slice(const struct kl_gpu_share *s, size_t *first, size_t *count)
{
    const size_t per_unit = UNIT / s->bytes, units = (s->task->count + per_unit - 1) / per_unit;
    const size_t begin = units * (size_t)s->number / (size_t)s->of * per_unit;
    const size_t end = units * (size_t)(s->number + 1) / (size_t)s->of * per_unit;

    *first = begin;
    *count = (end < s->task->count ? end : s->task->count) - begin;
}

/* To one rank or all: a slice of it. */
static void set_whole(const struct kl_gpu_share *s, struct kl_gpu_job *j)
{
    size_t first, count;

    slice(s, &first, &count);
    j->count = count;
    for (int r = 0; r < s->ranks; r++) {
        const struct kl_task *t = s->op[r]->task;
        j->in[r] = address(t->send) + first * s->bytes;
        if (kl_task_writes(t, r)) j->out[r] = address(t->recv) + first * s->bytes;
    }
}

/* A part to each rank; here the parts of this GPU's ranks. */
static void set_scattered(const struct kl_gpu_share *s, struct kl_gpu_job *j)
{
    j->scattered = 1;
    j->count = s->task->count;
    j->stride = s->task->count * s->bytes;
    for (int r = 0; r < s->ranks; r++) {
        j->in[r] = address(s->op[r]->task->send);
        if (kl_gpu_is_own(s, r)) j->out[r] = address(s->op[r]->task->recv);
    }
}

static ncclResult_t reduce(const struct kl_gpu_share *s)
{
    const bool scattered = kl_func_info[s->task->func].send_parts;
    struct kl_gpu_job *j = kl_gpu_job_clear(s);

    KL_TRY(kl_gpu_job_set_factors(s, j));
    if (scattered)
        set_scattered(s, j);
    else
        set_whole(s, j);
    return kl_gpu_job_launch(s, kl_kernel_of(s->task), s->bytes, scattered ? (unsigned)s->ranks : 1, 1);
}

/* ---- copies ---- */

/* Own ranks' parts to all. */
static ncclResult_t gather(const struct kl_gpu_share *s)
{
    const bool rooted = s->task->func == KL_FUNC_BROADCAST;
    struct kl_gpu_job *j = kl_gpu_job_clear(s);

    j->count = s->task->count * s->bytes;
    j->stride = rooted ? 0 : j->count;
    for (int r = 0; r < s->ranks; r++) {
        const struct kl_task *t = s->op[r]->task;
        if (kl_gpu_is_own(s, r) && kl_task_reads(t, r)) j->in[rooted ? 0 : r] = address(t->send);
        j->out[r] = address(t->recv);
    }
    return kl_gpu_job_launch(s, KL_KERNEL_copy_gather, 1, rooted ? 1 : (unsigned)s->ranks, 1);
}

static ncclResult_t exchange(const struct kl_gpu_share *s)
{
    struct kl_gpu_job *j = kl_gpu_job_clear(s);

    j->count = j->stride = s->task->count * s->bytes;
    for (int r = 0; r < s->ranks; r++) {
        if (kl_gpu_is_own(s, r)) j->own[r / 64] |= (uint64_t)1 << r % 64;
        j->in[r] = address(s->op[r]->task->send);
        j->out[r] = address(s->op[r]->task->recv);
    }
    return kl_gpu_job_launch(s, KL_KERNEL_copy_exchange, 1, (unsigned)s->ranks, (unsigned)s->ranks);
}

static ncclResult_t message(const struct kl_gpu_share *s)
{
    struct kl_gpu_job *j = kl_gpu_job_clear(s);

    j->ranks = 1;
    j->count = s->task->count * s->bytes;
    j->in[0] = address(s->op[0]->task->send);
    j->out[0] = address(s->op[1]->task->recv);
    return kl_gpu_job_launch(s, KL_KERNEL_copy_gather, 1, 1, 1);
}

static ncclResult_t move(const struct kl_gpu_share *s)
{
    if (kl_func_is_message(s->task->func)) return message(s);
    if (kl_func_info[s->task->func].reduces) return reduce(s);
    return s->task->func == KL_FUNC_ALL_TO_ALL ? exchange(s) : gather(s);
}

const struct kl_gpu_mover kl_gpu_mover_direct = {.name = "direct", .serves = serves, .move = move};
