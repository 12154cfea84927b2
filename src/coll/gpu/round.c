/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/round.h"

#include <stdlib.h>

enum { ALIGNMENT = 256, SLOTS = 2 };

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- how many rounds ---- */

/* Barriers have no elements here. A call with limits has a plan already, for all of it. */
static bool is_whole(const struct kl_task *t)
{
    return kl_func_is_message(t->func) || t->limits || !t->count;
}

/* Elements of a part in each round but the last one. */
static size_t elements_of_a_round(const struct kl_task *t, int nranks, size_t limit)
{
    const size_t part = limit / ((size_t)kl_func_parts(t->func, nranks) * kl_type_bytes(t->type));

    if (is_whole(t) || part >= t->count) return t->count;
    return part ? part : 1;
}

static size_t rounds_of(const struct kl_task *t, int nranks, size_t limit)
{
    const size_t each = elements_of_a_round(t, nranks, limit);

    return each ? (t->count + each - 1) / each : 1;
}

/* ---- room ---- */

static ncclResult_t make_room(struct kl_gpu_rounds *rounds, size_t ntravels, size_t nrounds)
{
    if (ntravels > rounds->travel_room) {
        struct kl_gpu_travel *grown = realloc(rounds->travel, ntravels * sizeof *grown);
        if (!grown) return KL_NOMEM("the operations of a call on several hosts");
        rounds->travel = grown;
        rounds->travel_room = ntravels;
    }
    if (nrounds > rounds->round_room) {
        struct kl_gpu_round *grown = realloc(rounds->round, nrounds * sizeof *grown);
        if (!grown) return KL_NOMEM("the rounds of a call on several hosts");
        rounds->round = grown;
        rounds->round_room = nrounds;
    }
    return ncclSuccess;
}

static ncclResult_t reserve(struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call, int nranks, size_t limit)
{
    const size_t nmessages = call->nops - call->ncollectives;
    size_t n = 0;

    for (size_t i = 0; i < call->ncollectives; i++) n += rounds_of(call->op[i].task, nranks, limit);
    return make_room(rounds, n + nmessages, n + (nmessages > 0));
}

/* ---- cutting ---- */

static const struct kl_func_info *info_of(const struct kl_task *t)
{
    return &kl_func_info[t->func];
}

/* Behind `from` on the stage, room for whole buffers, though some ranks do not use theirs; returns its end. */
static size_t lay_out(struct kl_gpu_travel *v, size_t from, int rank, int nranks)
{
    const struct kl_task *t = &v->task;
    const size_t part = t->count * kl_type_bytes(t->type), parts = (size_t)nranks;
    const bool moves = v->op->task->count > 0; /* a barrier does not */

    if (v->op->by_nic) return from;
    v->at[KL_GPU_SEND] = from;
    v->at[KL_GPU_RECV] =
        v->at[KL_GPU_SEND] + (t->func == KL_FUNC_RECV ? 0 : align(info_of(t)->send_parts ? part * parts : part));
    v->at[KL_GPU_FACTOR] =
        v->at[KL_GPU_RECV] + (t->func == KL_FUNC_SEND ? 0 : align(info_of(t)->recv_parts ? part * parts : part));
    v->bytes[KL_GPU_SEND] = moves && kl_task_reads(t, rank) ? part : 0;
    v->bytes[KL_GPU_RECV] = moves && kl_task_writes(t, rank) ? part : 0;
    v->bytes[KL_GPU_FACTOR] = t->scalar ? kl_type_bytes(t->type) : 0;
    return moves ? v->at[KL_GPU_FACTOR] + align(v->bytes[KL_GPU_FACTOR]) : from;
}

static struct kl_gpu_round *add_round(struct kl_gpu_rounds *rounds, bool messages)
{
    struct kl_gpu_round *r = &rounds->round[rounds->nrounds++];

    *r = (struct kl_gpu_round){.travel = rounds->ntravels, .messages = messages};
    return r;
}

static struct kl_gpu_travel *add_travel(struct kl_gpu_rounds *rounds, struct kl_gpu_round *r,
                                        const struct kl_gpu_op *op)
{
    struct kl_gpu_travel *v = &rounds->travel[rounds->ntravels++];

    *v = (struct kl_gpu_travel){.task = *op->task, .op = op};
    r->ntravels++;
    return v;
}

static void note_stage(struct kl_gpu_rounds *rounds, size_t end)
{
    if (end > rounds->stage_bytes) rounds->stage_bytes = end;
}

static void cut_collective(struct kl_gpu_rounds *rounds, const struct kl_gpu_op *op, int rank, int nranks, size_t limit)
{
    const size_t each = elements_of_a_round(op->task, nranks, limit), n = rounds_of(op->task, nranks, limit);
    size_t slot = 0;

    for (size_t i = 0; i < n; i++) {
        struct kl_gpu_round *r = add_round(rounds, false);
        struct kl_gpu_travel *v = add_travel(rounds, r, op);
        r->index = (uint32_t)i;
        r->first = i * each;
        v->task.count = i + 1 < n ? each : op->task->count - r->first;
        if (!op->task->count) v->task.count = 1; /* a barrier reduces an element of the communicator's */
        v->task.bytes = v->task.count * kl_type_bytes(v->task.type) * (size_t)kl_func_parts(v->task.func, nranks);
        const size_t end = lay_out(v, i % SLOTS * slot, rank, nranks);
        if (!i) slot = end;
        note_stage(rounds, end);
    }
}

static void cut_messages(struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call, int nranks)
{
    struct kl_gpu_round *r = add_round(rounds, true);
    size_t end = 0;

    for (size_t i = call->ncollectives; i < call->nops; i++) {
        r->by_nic |= call->op[i].by_nic;
        end = lay_out(add_travel(rounds, r, &call->op[i]), end, call->rank, nranks);
    }
    note_stage(rounds, end);
}

ncclResult_t kl_gpu_rounds_cut(struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call, int nranks, size_t limit)
{
    rounds->ntravels = rounds->nrounds = rounds->ncollectives = rounds->stage_bytes = 0;
    KL_TRY(reserve(rounds, call, nranks, limit));
    for (size_t i = 0; i < call->ncollectives; i++) cut_collective(rounds, &call->op[i], call->rank, nranks, limit);
    rounds->ncollectives = rounds->nrounds;
    if (call->nops > call->ncollectives) cut_messages(rounds, call, nranks);
    if (rounds->nrounds) rounds->round[rounds->nrounds - 1].last_of_call = true;
    return ncclSuccess;
}

void kl_gpu_rounds_place(struct kl_gpu_rounds *rounds, char *stage)
{
    for (size_t i = 0; i < rounds->ntravels; i++) {
        struct kl_gpu_travel *v = &rounds->travel[i];
        v->task.choice.of_gpu = v->op->by_nic;
        if (v->op->by_nic) continue;
        if (!v->op->task->count && !kl_func_is_message(v->task.func)) continue; /* a barrier's element is on the host */
        v->task.send = stage + v->at[KL_GPU_SEND];
        v->task.recv = stage + v->at[KL_GPU_RECV];
        if (v->task.scalar) v->task.scalar = stage + v->at[KL_GPU_FACTOR];
    }
}

void kl_gpu_rounds_free(struct kl_gpu_rounds *rounds)
{
    free(rounds->travel);
    free(rounds->round);
}
