/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/submit.h"

#include "coll/gpu/mover.h"
#include "coll/schedule/signature.h"

#include <stdio.h>

enum { SLICE = 128 << 10 }; /* bytes below which a further GPU costs more than its share of the work saves */

static const struct kl_cuda_driver *driver_of(const struct kl_gpu_worker *w)
{
    return w->context->driver;
}

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

/* A single rank needs no other stream than the program's. */
static bool is_alone(const struct kl_gpu_team *team)
{
    return team->nranks == 1;
}

/* ---- order ---- */

static ncclResult_t wait_for(const struct kl_gpu_worker *w, kl_cu_event event)
{
    KL_CUDA_TRY(driver_of(w), cuStreamWaitEvent(w->stream, event, 0), "device %d", w->context->device);
    return ncclSuccess;
}

/* Each call once. */
static ncclResult_t wait_for_call(struct kl_gpu_team *team, const struct kl_gpu_worker *w, struct kl_gpu_call *call)
{
    const uint64_t bit = (uint64_t)1 << number_of(team, w);

    if (call->waited & bit) return ncclSuccess;
    call->waited |= bit;
    return wait_for(w, call->ready);
}

/* Within a call, other GPUs may have collectives in work whose results this operation uses. */
static ncclResult_t wait_for_workers(struct kl_gpu_team *team, struct kl_gpu_worker *w)
{
    for (int i = 0; i < team->nworkers; i++) {
        struct kl_gpu_worker *other = &team->worker[i];
        if (other == w || w->seen[i] == other->collective) continue;
        w->seen[i] = other->collective;
        KL_TRY(wait_for(w, other->end[other->collective % KL_GPU_ENDS]));
    }
    return ncclSuccess;
}

static ncclResult_t wait_for_all(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n)
{
    bool several = false;

    for (int r = 0; r < n; r++) {
        several |= op[r]->call->nops > 1;
        KL_TRY(wait_for_call(team, w, op[r]->call));
    }
    return several ? wait_for_workers(team, w) : ncclSuccess;
}

static ncclResult_t record_end(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n)
{
    const uint64_t end = w->ends + 1;

    KL_CUDA_TRY(driver_of(w), cuEventRecord(w->end[end % KL_GPU_ENDS], w->stream), "device %d", w->context->device);
    w->ends = end;
    if (!kl_func_is_message(op[0]->task->func)) w->collective = end;
    for (int r = 0; r < n; r++) {
        op[r]->call->used |= (uint64_t)1 << number_of(team, w);
        op[r]->call->end[number_of(team, w)] = end;
    }
    return ncclSuccess;
}

/* ---- a worker's share ---- */

static ncclResult_t move_in_order(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s,
                                  struct kl_gpu_worker *w)
{
    if (is_alone(s->team)) return mover->move(s);
    KL_TRY(wait_for_all(s->team, w, s->op, s->ranks));
    KL_TRY(mover->move(s));
    return record_end(s->team, w, s->op, s->ranks);
}

static ncclResult_t run_on(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_share s)
{
    const struct kl_gpu_mover *mover = kl_gpu_mover_of(team->mover, &s);

    s.worker = w;
    s.stream = is_alone(team) ? s.op[0]->stream : w->stream;
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = move_in_order(mover, &s, w);
    kl_cuda_leave(w->context);
    return rc;
}

static struct kl_gpu_share share_of(struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n)
{
    return (struct kl_gpu_share){
        .team = team, .op = op, .task = op[0]->task, .ranks = n, .bytes = kl_type_bytes(op[0]->task->type), .of = 1};
}

/* ---- collectives ---- */

/* Slices of a whole result are for some of the GPUs. */
static int slices_of(const struct kl_gpu_team *team, const struct kl_gpu_share *s)
{
    const size_t wanted = s->task->count * s->bytes / SLICE + 1;

    return wanted < (size_t)team->nworkers ? (int)wanted : team->nworkers;
}

static ncclResult_t run_slices(struct kl_gpu_team *team, struct kl_gpu_share s)
{
    s.of = slices_of(team, &s);
    for (s.number = 0; s.number < s.of; s.number++) KL_TRY(run_on(team, &team->worker[s.number], s));
    return ncclSuccess;
}

/* Each GPU reduces, or sends, the parts of its own ranks; of a broadcast, the root's. */
static ncclResult_t run_parts(struct kl_gpu_team *team, struct kl_gpu_share s)
{
    if (s.task->func == KL_FUNC_BROADCAST) return run_on(team, &team->worker[team->worker_of[s.task->peer]], s);
    for (int i = 0; i < team->nworkers; i++) KL_TRY(run_on(team, &team->worker[i], s));
    return ncclSuccess;
}

static ncclResult_t compare(const struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    struct kl_known_call call[KL_JOB_RANKS];
    char text[KL_ERROR_TEXT];
    int culprit;

    for (int r = 0; r < team->nranks; r++) {
        const struct kl_task *t = op[r]->task;
        call[r].known = true;
        call[r].call = kl_call_of(t->func, t->type, kl_task_op_code(t), t->peer, t->count, t->number);
        if (t->limits) call[r].call = kl_call_configured(call[r].call, t->limits);
    }
    if (!kl_call_verdict(call, team->nranks, op[0]->task->number, text, sizeof text, &culprit)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s", text);
}

ncclResult_t kl_gpu_submit_collective(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    const struct kl_gpu_share s = share_of(team, op, team->nranks);
    const struct kl_func_info *info = &kl_func_info[s.task->func];

    KL_TRY(compare(team, op));
    return info->reduces && !info->send_parts ? run_slices(team, s) : run_parts(team, s);
}

/* ---- messages ---- */

ncclResult_t kl_gpu_submit_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv)
{
    struct kl_gpu_op *const op[] = {send, recv};
    char text[KL_CALL_TEXT];

    if (send->task->type != recv->task->type || send->task->count != recv->task->count)
        return KL_FAIL(ncclInvalidUsage, "rank %d: %s", recv->call->rank,
                       kl_message_differs(kl_message_signature(send->task->type, send->task->count), send->call->rank,
                                          kl_message_signature(recv->task->type, recv->task->count), text));
    return run_on(team, &team->worker[team->worker_of[recv->call->rank]], share_of(team, op, 2));
}
