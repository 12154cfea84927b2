/* SPDX-License-Identifier: Apache-2.0 */
/**
 * issue.c - the destination of an operation: its stream, the open group, or a graph.
 */
#include "comm/queue/issue.h"

#include "comm/queue/captured.h"
#include "comm/queue/group.h"
#include "comm/queue/record.h"

#include <stdlib.h>

ncclResult_t kl_comm_next_queued(ncclComm_t comm, struct kl_task **task)
{
    size_t room = comm->queued_room;

    if (comm->nqueued == room) {
        room = room ? 2 * room : 16;
        struct kl_queued *grown = realloc(comm->queued, room * sizeof *grown);
        if (!grown) return KL_NOMEM("the operations of a group");
        comm->queued = grown;
        comm->queued_room = room;
    }
    *task = &comm->queued[comm->nqueued].task;
    return ncclSuccess;
}

static void enqueue(ncclComm_t comm, struct kl_stream *stream)
{
    struct kl_queued *q = &comm->queued[comm->nqueued++];

    q->stream = stream;
    q->number = kl_stream_number(stream);
    if (comm->profile) q->call = kl_comm_profile_call();
    comm->queued_several_streams |= stream != comm->queued->stream;
    comm->queued_to_self |= kl_func_is_message(q->task.func) && q->task.peer == comm->rank;
}

/* In the ring, where it is already, unless another thread has ended the capture that it was made for. */
static ncclResult_t put_in_ring(ncclComm_t comm, const struct kl_task *task)
{
    if (task == kl_comm_task(comm, kl_load_relaxed(&comm->tasks_taken))) return ncclSuccess;
    KL_TRY(kl_comm_make_room(comm, 1));
    *kl_comm_task(comm, kl_load_relaxed(&comm->tasks_taken)) = *task;
    return ncclSuccess;
}

static __attribute__((noinline)) void launch_profiled(ncclComm_t comm, struct kl_stream *stream)
{
    kl_comm_profile_note(comm, kl_load_relaxed(&comm->tasks_taken), kl_comm_profile_call());
    kl_comm_record(comm, stream, kl_ticks());
    kl_comm_profile_launch_begin(comm, stream, 1);
    const bool done = kl_comm_try_run_now(comm, stream, 1, true);
    if (!done) kl_comm_launch(comm, stream, 1, 0);
    kl_comm_profile_launch_end(comm, 1);
    if (!done) kl_comm_run_inline(comm);
}

static inline void launch(ncclComm_t comm, struct kl_stream *stream)
{
    if (comm->profile) {
        launch_profiled(comm, stream);
        return;
    }
    kl_comm_record(comm, stream, kl_ticks());
    if (kl_comm_try_run_now(comm, stream, 1, true)) return;
    kl_comm_launch(comm, stream, 1, 0);
    kl_comm_run_inline(comm);
}

static inline ncclResult_t issue(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream)
{
    if (!kl_func_is_message(task->func)) KL_TRY(kl_exec_choose(comm->exec, task));
    if (kl_load_relaxed(&comm->in_group)) {
        enqueue(comm, stream);
        return ncclSuccess;
    }
    if (kl_load_relaxed(&stream->flags) & (KL_STREAM_CAPTURING | KL_STREAM_ORDERED)) {
        bool captured;
        KL_TRY(kl_captured_op(comm, task, stream, &captured));
        if (captured) return ncclSuccess;
    }
    KL_TRY(put_in_ring(comm, task));
    launch(comm, stream);
    return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t issue_traced(ncclComm_t comm, struct kl_task *task,
                                                           struct kl_stream *stream)
{
    uint64_t begin = kl_ticks(), before = kl_load_relaxed(&comm->tasks_taken);
    ncclResult_t rc = issue(comm, task, stream);
    struct kl_trace_event e = kl_trace_task(KL_TRACE_CALL, task);

    e.number = kl_load_relaxed(&comm->tasks_taken) == before ? 0 : before + 1;
    e.begin = begin;
    e.end = kl_ticks();
    if (!rc) kl_trace_add(comm->trace, KL_TRACE_CALLER, &e);
    return rc;
}

static __attribute__((noinline)) ncclResult_t issue_profiled(ncclComm_t comm, struct kl_task *task,
                                                             struct kl_stream *stream)
{
    const int depth = kl_group_open() ? kl_group_depth.depth : 0;
    struct kl_profile_event call;

    kl_comm_profile_call_begin(comm, task, stream, kl_exec_tag(comm->exec), depth, &call);
    ncclResult_t rc = comm->trace ? issue_traced(comm, task, stream) : issue(comm, task, stream);
    kl_comm_profile_call_end(&call, depth);
    return rc;
}

ncclResult_t kl_comm_issue(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream)
{
    if (comm->profile) return issue_profiled(comm, task, stream);
    return comm->trace ? issue_traced(comm, task, stream) : issue(comm, task, stream);
}

ncclResult_t kl_comm_issue_empty(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream)
{
    if (kl_load_relaxed(&stream->flags) & KL_STREAM_CAPTURING) return kl_captured_empty(comm, task, stream);
    return kl_comm_record_empty(comm, task);
}
