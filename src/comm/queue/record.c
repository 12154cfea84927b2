/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.c - the requested operations: tasks in a ring of the communicator, launched by themselves or by a group.
 */
#include "comm/queue/record.h"

#include "comm/queue/onesided.h"

#include <stdlib.h>

/* ---- room ---- */

/* Make the ring hold `ntasks` at once. Only a group larger than any before has to wait and allocate. */
ncclResult_t kl_comm_reserve(ncclComm_t comm, size_t ntasks)
{
    uint64_t room = comm->task_room;

    if (ntasks <= room) return ncclSuccess;
    while (room < ntasks) room *= 2;
    kl_comm_wait_for_flight(comm, 0, 0);
    struct kl_task *larger = aligned_alloc(KL_LINE, room * sizeof *larger);
    if (!larger) return KL_NOMEM("the operations of a group");
    free(comm->tasks); /* none is in flight */
    comm->tasks = larger;
    comm->task_room = room;
    if (comm->profile) KL_TRY(kl_comm_profile_reserve(comm, room));
    return kl_exec_reserve(comm->exec, room);
}

ncclResult_t kl_comm_make_room(ncclComm_t comm, size_t ntasks)
{
    if (kl_comm_has_room(comm, ntasks)) return ncclSuccess;
    KL_TRY(kl_comm_reserve(comm, ntasks));
    kl_comm_wait_for_flight(comm, comm->task_room - ntasks, KL_LAUNCHES - 1);
    return ncclSuccess;
}

/* ---- one ---- */

ncclResult_t kl_comm_record_empty(ncclComm_t comm, struct kl_task *task)
{
    kl_comm_record_collective(comm, task);
    return ncclSuccess;
}

/* ---- groups ---- */

static void record_queued(ncclComm_t comm, const struct kl_queued *op, uint64_t now)
{
    if (comm->profile) kl_comm_profile_note(comm, kl_load_relaxed(&comm->tasks_taken), op->call);
    *kl_comm_task(comm, kl_load_relaxed(&comm->tasks_taken)) = op->task;
    kl_comm_record(comm, op->stream, now);
}

/* Collectives first, then all messages together: every rank orders a group the same way. */
static void record_all(ncclComm_t comm, const struct kl_queued *ops, size_t n)
{
    const uint64_t now = kl_ticks();
    size_t messages = 0;

    for (size_t i = 0; i < n; i++) messages += kl_func_is_message(ops[i].task.func);
    for (size_t i = 0; i < n && messages < n; i++)
        if (!kl_func_is_message(ops[i].task.func)) record_queued(comm, &ops[i], now);
    for (size_t i = 0; i < n && messages; i++)
        if (kl_func_is_message(ops[i].task.func)) record_queued(comm, &ops[i], now);
}

/* The next queued message of the rank to itself, from position `i`; nqueued if there is none. */
static size_t next_to_self(ncclComm_t comm, int func, size_t i)
{
    while (i < comm->nqueued && (comm->queued[i].task.func != func || comm->queued[i].task.peer != comm->rank)) i++;
    return i;
}

static size_t message_bytes(ncclComm_t comm, size_t i)
{
    const struct kl_task *t = &comm->queued[i].task;

    return t->count * kl_comm_elem_bytes(comm, t);
}

/* Sends of the rank to itself and its receives from itself come in pairs of one size. */
static ncclResult_t check_self(ncclComm_t comm)
{
    size_t n = comm->nqueued, s = next_to_self(comm, KL_FUNC_SEND, 0), r = next_to_self(comm, KL_FUNC_RECV, 0);

    for (; s < n && r < n; s = next_to_self(comm, KL_FUNC_SEND, s + 1), r = next_to_self(comm, KL_FUNC_RECV, r + 1)) {
        size_t sent = message_bytes(comm, s), received = message_bytes(comm, r);
        if (sent != received)
            return KL_FAIL(ncclInvalidUsage, "rank %d sends %zu bytes to itself and receives %zu", comm->rank, sent,
                           received);
    }
    if (s < n || r < n)
        return KL_FAIL(ncclInvalidUsage, "rank %d has a %s itself without the opposite call in the same group",
                       comm->rank, s < n ? "send to" : "receive from");
    return ncclSuccess;
}

/* The first operation of a stream stands for all: it has the oldest number. */
static ncclResult_t check_streams(ncclComm_t comm)
{
    const size_t n = kl_comm_queued_streams(comm);

    for (size_t i = 0; i < n; i++)
        if (kl_stream_number(comm->queued[i].stream) != comm->queued[i].number)
            return KL_FAIL(ncclInvalidUsage,
                           "rank %d: the stream of %s was destroyed between ncclGroupStart and ncclGroupEnd",
                           comm->rank, kl_func_info[comm->queued[i].task.func].name);
    return ncclSuccess;
}

ncclResult_t kl_comm_check_queued(ncclComm_t comm)
{
    if (!comm->gpus) KL_TRY(check_streams(comm));
    if (kl_comm_has_onesided(comm)) KL_TRY(kl_comm_check_onesided(comm));
    return comm->queued_to_self ? check_self(comm) : ncclSuccess;
}

static void launch(ncclComm_t comm, const struct kl_queued *ops, size_t n, bool apart, bool alone)
{
    struct kl_stream *stream = ops[n - 1].stream;
    uint32_t joins = apart ? kl_comm_launch_joins(comm, ops, n, stream) : 0;

    record_all(comm, ops, n);
    if (comm->profile) kl_comm_profile_launch_begin(comm, stream, (uint32_t)n);
    if (joins || !kl_comm_try_run_now(comm, stream, (uint32_t)n, alone))
        kl_comm_launch(comm, stream, (uint32_t)n, joins);
    if (comm->profile) kl_comm_profile_launch_end(comm, (uint32_t)n);
}

void kl_comm_launch_together(ncclComm_t comm, const struct kl_queued *ops, size_t n, bool alone)
{
    launch(comm, ops, n, true, alone);
}

static void forget_queued(ncclComm_t comm)
{
    comm->nqueued = 0;
    comm->queued_several_streams = comm->queued_to_self = false;
}

void kl_comm_launch_queued(ncclComm_t comm, bool alone)
{
    const bool onesided = kl_comm_has_onesided(comm);

    if (onesided) kl_comm_launch_onesided(comm, KL_ONESIDED_BEFORE);
    if (comm->nqueued) launch(comm, comm->queued, comm->nqueued, comm->queued_several_streams, alone);
    forget_queued(comm);
    if (onesided) kl_comm_launch_onesided(comm, KL_ONESIDED_AFTER);
}

float kl_comm_time_queued(ncclComm_t comm)
{
    float time = 0;

    for (size_t i = 0; i < comm->nqueued; i++) time += comm->queued[i].task.choice.time_us;
    return time;
}

void kl_comm_drop_queued(ncclComm_t comm)
{
    if (kl_comm_has_onesided(comm)) kl_comm_drop_onesided(comm);
    forget_queued(comm);
}
