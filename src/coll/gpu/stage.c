/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/stage.h"

#include "base/log.h"
#include "coll/gpu/schedule_fit.h"
#include "coll/gpu/relay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 256, PAGE = 2 << 20 };

static size_t align(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- which buffers need one ---- */

/* Receivers read a message's send buffer; kernels of other processes all buffers of a collective. */
static bool is_used_elsewhere(const struct kl_gpu_team *team, const struct kl_task *t, int kind, int rank)
{
    if (kl_func_is_message(t->func))
        return kind == KL_GPU_SEND && kl_gpu_is_far(team, t->peer) && !kl_gpu_is_relayed(team, rank, t->peer);
    return team->far->is_used;
}

static bool is_mappable(const struct kl_cuda_context *c, const void *ptr)
{
    struct kl_gpu_export_handle exported;

    return kl_gpu_far_export(c, ptr, &exported);
}

/* A result in place of its input is there on the stage as well. */
static bool is_in_place(const struct kl_gpu_buffer *b)
{
    return b[KL_GPU_SEND].bytes && b[KL_GPU_RECV].bytes && b[KL_GPU_SEND].ptr == b[KL_GPU_RECV].ptr;
}

/* Places from `from` on; returns their end. */
static size_t place_buffers(const struct kl_gpu_team *team, struct kl_gpu_op *op, int rank, size_t from)
{
    const struct kl_cuda_context *c = team->worker[team->worker_of[rank]].context;
    struct kl_gpu_buffer b[KL_GPU_BUFFERS];
    size_t end = from;

    kl_gpu_buffers_of(op->task, rank, team->nranks, b);
    for (int i = 0; i < KL_GPU_BUFFERS; i++) {
        struct kl_gpu_staged *s = &op->stage[i];
        if (!b[i].bytes || !is_used_elsewhere(team, op->task, i, rank) || is_mappable(c, b[i].ptr)) continue;
        const size_t at = i == KL_GPU_RECV && is_in_place(b) ? (size_t)op->stage[KL_GPU_SEND].at : end;
        *s = (struct kl_gpu_staged){.at = at, .bytes = b[i].bytes};
        if (end < at + align(s->bytes, ALIGNMENT)) end = at + align(s->bytes, ALIGNMENT);
    }
    return end;
}

/* ---- memory ---- */

/* No part of a graph that the thread may capture. */
static int allocate(const struct kl_cuda_context *c, size_t bytes, uint64_t *at)
{
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    int rc = c->driver->cuMemAlloc(at, bytes);
    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    return rc;
}

static ncclResult_t create(struct kl_gpu_team *team, int rank, const struct kl_gpu_stage *like, uint64_t *at)
{
    const struct kl_cuda_context *c = team->worker[team->worker_of[rank]].context;
    struct kl_gpu_stage *s = malloc(sizeof *s);

    if (!s) return KL_NOMEM("a stage");
    *s = *like;
    s->context = c;
    int rc = allocate(c, s->bytes, &s->at);
    if (rc) {
        free(s);
        return KL_FAIL(
            ncclUnhandledCudaError,
            "rank %d: other processes cannot map its memory, and a stage of %zu bytes on device %d is not to "
            "be had: cuMemAlloc failed with %s (%d); use cudaMalloc or ncclMemAlloc",
            rank, like->bytes, c->device, kl_cuda_error_name(c->driver, rc), rc);
    }
    if (!is_mappable(c, (const void *)(uintptr_t)s->at)) {
        (void)c->driver->cuMemFree(s->at);
        free(s);
        return KL_FAIL(ncclUnhandledCudaError, "rank %d: other processes cannot map memory of device %d", rank,
                       c->device);
    }
    s->next = team->far->stage[rank];
    team->far->stage[rank] = s;
    *at = s->at;
    KL_INFO(KL_ALLOC, "rank %d: a stage of %zu bytes on device %d for %s in memory that other processes cannot map",
            rank, s->bytes, c->device, s->messages ? "messages" : "collectives");
    return ncclSuccess;
}

/* The newest stage of this use and graph, if it is large enough; else a new one, larger by half at least. */
static ncclResult_t get(struct kl_gpu_team *team, int rank, struct kl_gpu_stage wanted, uint64_t *at)
{
    const struct kl_gpu_stage *s = team->far->stage[rank];

    while (s && (s->messages != wanted.messages || s->capture != wanted.capture)) s = s->next;
    if (s && s->bytes >= wanted.bytes) {
        *at = s->at;
        return ncclSuccess;
    }
    if (s && wanted.bytes < s->bytes + s->bytes / 2) wanted.bytes = s->bytes + s->bytes / 2;
    wanted.bytes = align(wanted.bytes, PAGE);
    return create(team, rank, &wanted, at);
}

/* Operations [from, to), which are messages, or collectives: these follow each other and use the same place. */
static ncclResult_t reserve(struct kl_gpu_team *team, struct kl_gpu_call *call, size_t from, size_t to, bool messages)
{
    struct kl_gpu_stage wanted = {.messages = messages, .capture = call->capture};
    uint64_t at = 0;

    for (size_t i = from; i < to; i++) {
        if (kl_gpu_uses_own_buffers(team, call->op[i].task, call->capture != 0)) continue;
        const size_t end = place_buffers(team, &call->op[i], call->rank, messages ? wanted.bytes : 0);
        if (end > wanted.bytes) wanted.bytes = end;
    }
    if (!wanted.bytes) return ncclSuccess;
    KL_TRY(get(team, call->rank, wanted, &at));
    for (size_t i = from; i < to; i++)
        for (int b = 0; b < KL_GPU_BUFFERS; b++)
            if (call->op[i].stage[b].bytes) call->op[i].stage[b].at += at;
    return ncclSuccess;
}

ncclResult_t kl_gpu_stage_reserve(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    KL_TRY(reserve(team, call, 0, call->ncollectives, false));
    return reserve(team, call, call->ncollectives, call->nops, true);
}

/* ---- copies ---- */

static ncclResult_t copy(const struct kl_gpu_worker *w, uint64_t to, uint64_t from, size_t bytes)
{
    const struct kl_cuda_context *c = w->context;

    KL_CUDA_TRY(c->driver, cuMemcpyAsync(to, from, bytes, w->stream), "a stage of %zu bytes on device %d", bytes,
                c->device);
    return ncclSuccess;
}

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

ncclResult_t kl_gpu_stage_in(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op)
{
    struct kl_gpu_buffer b[KL_GPU_BUFFERS];

    if (!kl_gpu_stage_has_input(op)) return ncclSuccess;
    kl_gpu_buffers_of(op->task, op->call->rank, team->nranks, b);
    for (int i = 0; i < KL_GPU_BUFFERS; i++)
        if (i != KL_GPU_RECV && op->stage[i].bytes)
            KL_TRY(copy(w, op->stage[i].at, address(b[i].ptr), op->stage[i].bytes));
    return ncclSuccess;
}

ncclResult_t kl_gpu_stage_out(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op)
{
    const struct kl_gpu_staged *s = &op->stage[KL_GPU_RECV];

    (void)team;
    return s->bytes ? copy(w, address(op->task->recv), s->at, s->bytes) : ncclSuccess;
}

static void *pointer(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

void kl_gpu_stage_use(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    struct kl_gpu_far *far = team->far;

    for (int r = 0; r < team->nranks; r++) {
        if (kl_gpu_is_far(team, r) || !kl_gpu_stage_exists(op[r])) continue;
        struct kl_task *t = &far->task[r];
        *t = *op[r]->task;
        far->op[r] = *op[r];
        far->op[r].task = t;
        if (op[r]->stage[KL_GPU_SEND].bytes) t->send = pointer(op[r]->stage[KL_GPU_SEND].at);
        if (op[r]->stage[KL_GPU_RECV].bytes) t->recv = pointer(op[r]->stage[KL_GPU_RECV].at);
        if (op[r]->stage[KL_GPU_FACTOR].bytes) t->scalar = pointer(op[r]->stage[KL_GPU_FACTOR].at);
        op[r] = &far->op[r];
    }
}
