/* SPDX-License-Identifier: Apache-2.0 */
/**
 * launch.c - from a call to finished work: record tasks, queue a launch, run its tasks in order.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "coll/schedule.h"
#include "device/host/backoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a launch's work record says: owner is the communicator. */
enum { ARG_LAUNCH, ARG_FIRST, ARG_COUNTS }; /* its number; its first task; tasks, and streams that it waits for << 32 */

static const char *const coll_names[] = {
    [KL_ALLREDUCE] = "all-reduce",
    [KL_REDUCE] = "reduce",
    [KL_BROADCAST] = "broadcast",
    [KL_ALLGATHER] = "all-gather",
    [KL_REDUCESCATTER] = "reduce-scatter",
    [KL_SEND] = "send",
    [KL_RECV] = "receive",
};

static struct kl_task *task_at(ncclComm_t comm, uint64_t number)
{
    return &comm->tasks[number & (comm->task_room - 1)];
}

static bool is_message(const struct kl_task *t)
{
    return t->coll == KL_SEND || t->coll == KL_RECV;
}

/* ---- collectives ---- */

static int ring_index_of(const struct kl_ring *ring, int rank)
{
    for (int i = 0; i < ring->nranks; i++)
        if (ring->order[i] == rank) return (ring->index + i) % ring->nranks;
    return 0;
}

/* Channels beyond the first pay from some size on: each has hops of its own to wait for. */
static int channels_for(ncclComm_t comm, size_t bytes)
{
    enum { LEAST_SHARE = 64 << 10 };
    size_t useful = bytes / LEAST_SHARE;

    return useful >= (size_t)comm->nchannels ? comm->nchannels : useful > 1 ? (int)useful : 1;
}

static void start_ring_ops(ncclComm_t comm, const struct kl_task *t)
{
    static const struct kl_schedule *const schedules[] = {
        [KL_ALLREDUCE] = &kl_allreduce_ring,         [KL_REDUCE] = &kl_reduce_ring,
        [KL_BROADCAST] = &kl_broadcast_ring,         [KL_ALLGATHER] = &kl_allgather_ring,
        [KL_REDUCESCATTER] = &kl_reducescatter_ring,
    };
    bool reduces = t->coll == KL_ALLREDUCE || t->coll == KL_REDUCE || t->coll == KL_REDUCESCATTER;
    bool rooted = t->coll == KL_REDUCE || t->coll == KL_BROADCAST;
    struct kl_ring_task task = {
        .schedule = schedules[t->coll],
        .redop = reduces ? &comm->redops[t->type][t->op] : NULL,
        .send = t->send,
        .recv = t->recv,
        .count = t->count,
        .elem_bytes = comm->redops[t->type][ncclSum].elem_bytes,
    };
    int n = channels_for(comm, t->count * task.elem_bytes);

    for (int c = 0; c < n; c++) {
        struct kl_ring *ring = &comm->channels[c].ring;
        task.first = t->count / (size_t)n * (size_t)c;
        task.end = c == n - 1 ? t->count : t->count / (size_t)n * (size_t)(c + 1);
        task.root = rooted ? ring_index_of(ring, t->peer) : 0;
        kl_ring_op_start(&comm->ring_ops[c], ring, &task);
    }
    comm->ring_ops_used = comm->ring_ops_left = n;
}

static enum kl_progress progress_ring_ops(ncclComm_t comm, ncclResult_t *rc)
{
    enum kl_progress step = KL_STALLED;

    for (int c = 0; c < comm->ring_ops_used; c++) {
        struct kl_ring_op *op = &comm->ring_ops[c];
        if (!op->ring) continue; /* complete */
        enum kl_progress s = kl_ring_op_progress(op, rc);
        if (*rc) return KL_DONE;
        if (s == KL_STALLED) continue;
        step = KL_MOVED;
        if (s != KL_DONE) continue;
        op->ring = NULL;
        if (!--comm->ring_ops_left) return KL_DONE;
    }
    return step;
}

/* With one rank every collective is a copy: all operations are the identity on one contribution. */
static enum kl_progress copy_alone(ncclComm_t comm, const struct kl_task *t)
{
    if (t->send != t->recv) memmove(t->recv, t->send, t->count * comm->redops[t->type][ncclSum].elem_bytes);
    return KL_DONE;
}

static enum kl_progress progress_collective(ncclComm_t comm, const struct kl_task *t, ncclResult_t *rc)
{
    if (comm->nranks == 1) return copy_alone(comm, t);
    if (!comm->ring_ops_left) start_ring_ops(comm, t);
    return progress_ring_ops(comm, rc);
}

/* ---- sends and receives: all of a launch together ---- */

/* The k-th send of this rank to itself meets its k-th receive; check_self made sure that they match. */
static void copy_to_self(ncclComm_t comm, uint64_t first, uint64_t end)
{
    uint64_t r = first;

    for (uint64_t s = first; s < end; s++) {
        struct kl_task *send = task_at(comm, s);
        if (send->coll != KL_SEND || send->peer != comm->rank) continue;
        while (task_at(comm, r)->coll != KL_RECV || task_at(comm, r)->peer != comm->rank) r++;
        struct kl_message *from = &send->message, *to = &task_at(comm, r++)->message;
        if (to->bytes && to->data != from->data) memmove(to->data, from->data, to->bytes);
        from->ended = to->ended = true;
    }
}

static struct kl_connector *connector_of(ncclComm_t comm, const struct kl_task *t)
{
    return t->coll == KL_SEND ? &comm->send_to[t->peer] : &comm->recv_from[t->peer];
}

static enum kl_progress progress_message(ncclComm_t comm, struct kl_task *t, ncclResult_t *rc)
{
    if (t->coll == KL_SEND) return kl_send_progress(&t->message, connector_of(comm, t));
    return kl_recv_progress(&t->message, connector_of(comm, t), rc);
}

static enum kl_progress progress_messages(ncclComm_t comm, uint64_t first, uint64_t end, ncclResult_t *rc)
{
    enum kl_progress step = KL_STALLED;
    bool all = true;

    if (!comm->in_messages) copy_to_self(comm, first, end);
    comm->in_messages = true;
    for (uint64_t i = first; i < end; i++) {
        struct kl_task *t = task_at(comm, i);
        if (t->peer == comm->rank || t->complete) continue;
        enum kl_progress s = t->waits ? KL_STALLED : progress_message(comm, t, rc);
        if (*rc) return KL_DONE;
        if (t->message.ended && t->next) task_at(comm, t->next - 1)->waits = false;
        t->complete = s == KL_DONE;
        all = all && t->complete;
        if (s != KL_STALLED) step = KL_MOVED;
    }
    return all ? KL_DONE : step;
}

/* ---- launches ---- */

static void finish_launch(ncclComm_t comm, uint64_t launch, uint64_t end)
{
    kl_store_relaxed(&comm->arrivals[launch % KL_LAUNCHES], 0);
    comm->stalls = 0;
    comm->stalled_since = 0;
    comm->ring_ops_left = 0;
    comm->in_messages = false;
    comm->cursor = end;
    kl_store_release(&comm->tasks_done, end);      /* pairs with wait_for_room: slots may be reused */
    kl_store_release(&comm->finished, launch + 1); /* pairs with run_launch of the next one */
}

/* The connectors hold a half-finished operation: nobody may read our memory through them any more. */
static void revoke_all(ncclComm_t comm)
{
    for (int c = 0; c < comm->nchannels; c++) kl_connector_revoke(&comm->channels[c].ring.to_next);
    for (int r = 0; comm->send_to && r < comm->nranks; r++) kl_connector_revoke(&comm->send_to[r]);
}

static void name_task(ncclComm_t comm, char *text, size_t size)
{
    const struct kl_task *t = task_at(comm, comm->cursor);

    snprintf(text, size, "%s of %zu elements", coll_names[t->coll], t->count);
}

/* A rank that has gone and will never do its part of the current task; -1 if there is none. */
static int find_gone(ncclComm_t comm, uint64_t end)
{
    for (int c = 0; comm->ring_ops_left && c < comm->ring_ops_used; c++) {
        int gone = comm->ring_ops[c].ring ? kl_ring_op_waits_in_vain(&comm->ring_ops[c]) : -1;
        if (gone >= 0) return gone;
    }
    if (!is_message(task_at(comm, comm->cursor))) return -1;
    for (uint64_t i = comm->cursor; i < end; i++) {
        const struct kl_task *t = task_at(comm, i);
        if (t->complete || t->waits || t->peer == comm->rank) continue;
        if (kl_message_waits_in_vain(&t->message, connector_of(comm, t))) return t->peer;
    }
    return -1;
}

/* The clock is looked at, and the neighbours are, once in some hundred polls without progress. */
static ncclResult_t check_patience(ncclComm_t comm, uint64_t end)
{
    char what[64], who[128];

    if (++comm->stalls % 256) return ncclSuccess;
    int gone = find_gone(comm, end);
    name_task(comm, what, sizeof what);
    if (gone >= 0)
        return KL_FAIL(ncclRemoteError, "%s: %s destroyed its communicator without taking part", what,
                       kl_comm_describe(comm, gone, who, sizeof who));
    if (!comm->timeout_ns) return ncclSuccess;
    uint64_t now = kl_now_ns();
    if (!comm->stalled_since) comm->stalled_since = now;
    if (now - comm->stalled_since < comm->timeout_ns) return ncclSuccess;
    const struct kl_task *t = task_at(comm, comm->cursor);
    int peer = is_message(t) ? t->peer : kl_ring_prev(&comm->channels[0].ring);
    return KL_FAIL(ncclRemoteError, "%s: nothing moved for %llu s, waiting for %s", what,
                   (unsigned long long)(comm->timeout_ns / 1000000000u), kl_comm_describe(comm, peer, who, sizeof who));
}

static enum kl_progress progress_tasks(ncclComm_t comm, uint64_t end, ncclResult_t *rc)
{
    enum kl_progress step = KL_STALLED;

    while (comm->cursor < end) {
        struct kl_task *t = task_at(comm, comm->cursor);
        bool message = is_message(t);
        enum kl_progress s =
            message ? progress_messages(comm, comm->cursor, end, rc) : progress_collective(comm, t, rc);
        if (*rc) return KL_DONE;
        if (s != KL_DONE) return s == KL_MOVED ? s : step;
        step = KL_MOVED;
        comm->cursor = message ? end : comm->cursor + 1;
    }
    return KL_DONE;
}

static enum kl_progress fail_launch(ncclComm_t comm, struct kl_stream *stream, struct kl_work *work)
{
    ncclResult_t rc = kl_comm_failure(comm);

    revoke_all(comm);
    kl_stream_fail(stream, comm, rc, kl_comm_failure_text(comm));
    finish_launch(comm, work->arg[ARG_LAUNCH], work->arg[ARG_FIRST] + (uint32_t)work->arg[ARG_COUNTS]);
    return KL_DONE;
}

static enum kl_progress run_launch(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    uint64_t launch = work->arg[ARG_LAUNCH], end = work->arg[ARG_FIRST] + (uint32_t)work->arg[ARG_COUNTS];
    uint32_t streams = (uint32_t)(work->arg[ARG_COUNTS] >> 32);
    ncclResult_t rc = ncclSuccess;

    if (kl_load_acquire(&comm->finished) != launch) return KL_STALLED; /* pairs with finish_launch */
    if (streams && kl_load_acquire(&comm->arrivals[launch % KL_LAUNCHES]) != streams) return KL_STALLED;
    if (kl_load_acquire(&comm->failed)) return fail_launch(comm, stream, work);

    enum kl_progress step = progress_tasks(comm, end, &rc);
    if (!rc && step == KL_STALLED) rc = check_patience(comm, end);
    if (rc) {
        kl_comm_fail(comm, comm->rank, rc, kl_error_text(), true);
        return fail_launch(comm, stream, work);
    }
    if (step == KL_MOVED) comm->stalls = 0, comm->stalled_since = 0;
    if (step == KL_DONE) finish_launch(comm, launch, end);
    return step;
}

/* On every stream but the last of a group that uses several: tell the launch that we are here, and wait for its end. */
static enum kl_progress join_launch(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    uint64_t launch = work->arg[ARG_LAUNCH];

    if (kl_load_acquire(&comm->finished) > launch) { /* pairs with finish_launch */
        if (kl_load_acquire(&comm->failed))
            kl_stream_fail(stream, comm, kl_comm_failure(comm), kl_comm_failure_text(comm));
        kl_fetch_sub_acq_rel(&comm->joins_left, 1); /* the last look at the communicator */
        return KL_DONE;
    }
    if (work->arg[ARG_COUNTS]) return KL_STALLED;
    work->arg[ARG_COUNTS] = 1;
    kl_fetch_add_acq_rel(&comm->arrivals[launch % KL_LAUNCHES], 1); /* pairs with run_launch */
    return KL_MOVED;
}

/* ---- recording ---- */

/* Drive the process until at most `tasks` tasks and `launches` launches are in flight. */
static void wait_for_flight(ncclComm_t comm, uint64_t tasks, uint64_t launches)
{
    struct kl_backoff wait = KL_BACKOFF_START;

    while (comm->tasks_taken - kl_load_acquire(&comm->tasks_done) > tasks || /* pairs with finish_launch */
           comm->launched - kl_load_acquire(&comm->finished) > launches) {
        if (kl_streams_poll(true) == KL_STALLED)
            kl_backoff_pause(&wait, comm->spin);
        else
            kl_backoff_reset(&wait);
    }
}

void kl_comm_quiesce(ncclComm_t comm)
{
    struct kl_backoff wait = KL_BACKOFF_START;

    wait_for_flight(comm, 0, 0);
    while (kl_load_acquire(&comm->joins_left)) /* pairs with join_launch */
        if (kl_streams_poll(true) == KL_STALLED) kl_backoff_pause(&wait, comm->spin);
}

static void revoke_lent(void *comm)
{
    revoke_all(comm);
}

void kl_comm_withdraw(ncclComm_t comm)
{
    ncclResult_t rc = kl_comm_failure(comm);

    kl_streams_withdraw(comm, rc, kl_comm_failure_text(comm), revoke_lent);
}

/* Make the ring hold `ntasks` at once. Only a group larger than any before has to wait and allocate. */
static ncclResult_t grow_ring(ncclComm_t comm, uint64_t ntasks)
{
    uint64_t room = comm->task_room ? comm->task_room : KL_TASKS;

    if (ntasks <= comm->task_room) return ncclSuccess;
    while (room < ntasks) room *= 2;
    wait_for_flight(comm, 0, 0);
    struct kl_task *grown = realloc(comm->tasks, room * sizeof *grown);
    if (!grown) return KL_NOMEM("the operations of a group");
    comm->tasks = grown;
    comm->task_room = room;
    return ncclSuccess;
}

static ncclResult_t make_room(ncclComm_t comm, uint64_t ntasks)
{
    if (ntasks > comm->task_room) KL_TRY(grow_ring(comm, ntasks));
    wait_for_flight(comm, comm->task_room - ntasks, KL_LAUNCHES - 1);
    return ncclSuccess;
}

static void record(ncclComm_t comm, const struct kl_task *task)
{
    struct kl_task *t = task_at(comm, comm->tasks_taken++);

    *t = *task;
    if (!is_message(t)) return;
    t->message = (struct kl_message){
        .data = t->coll == KL_SEND ? (char *)(uintptr_t)t->send : t->recv,
        .bytes = t->count * comm->redops[t->type][ncclSum].elem_bytes,
    };
}

static void push_launch(ncclComm_t comm, struct kl_stream *stream, uint32_t ntasks, uint32_t streams)
{
    struct kl_work work = {
        .progress = run_launch,
        .owner = comm,
        .arg = {comm->launched++, comm->tasks_taken - ntasks, ntasks | (uint64_t)streams << 32},
    };

    kl_store_relaxed(&stream->spin, comm->spin);
    comm->last_stream = stream;
    comm->last_ticket = kl_stream_push(stream, &work) + 1;
}

void kl_comm_run_inline(ncclComm_t comm)
{
    if (kl_load_relaxed(&comm->last_stream->flags) & KOLO_STREAM_INLINE)
        kl_stream_wait(comm->last_stream, comm->last_ticket);
}

static ncclResult_t enqueue(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream)
{
    size_t room = comm->queued_room;

    if (comm->nqueued == room) {
        room = room ? 2 * room : 16;
        struct kl_queued *grown = realloc(comm->queued, room * sizeof *grown);
        if (!grown) return KL_NOMEM("the operations of a group");
        comm->queued = grown;
        comm->queued_room = room;
    }
    comm->queued[comm->nqueued++] = (struct kl_queued){.task = *task, .stream = stream};
    return ncclSuccess;
}

ncclResult_t kl_comm_issue(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream)
{
    if (kl_load_relaxed(&comm->in_group)) return enqueue(comm, task, stream);
    KL_TRY(make_room(comm, 1));
    record(comm, task);
    push_launch(comm, stream, 1, 0);
    kl_comm_run_inline(comm);
    return ncclSuccess;
}

/* ---- groups ---- */

/* Streams of the group other than the launch's own, each once: they join. Returns how many. */
static uint32_t push_joins(ncclComm_t comm, const struct kl_stream *launch_stream)
{
    uint32_t joins = 0;

    for (size_t i = 0; i < comm->nqueued; i++) {
        struct kl_stream *s = comm->queued[i].stream;
        size_t j = 0;
        if (s == launch_stream) continue;
        while (j < i && comm->queued[j].stream != s) j++;
        if (j < i) continue;
        struct kl_work work = {.progress = join_launch, .owner = comm, .arg = {comm->launched}};
        kl_fetch_add_relaxed(&comm->joins_left, 1);
        kl_stream_push(s, &work);
        joins++;
    }
    return joins;
}

/* Messages on one connector follow each other: chain them. */
static void chain_messages(ncclComm_t comm, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        struct kl_task *t = task_at(comm, i);
        if (!is_message(t) || t->peer == comm->rank) continue;
        uint64_t *last = t->coll == KL_SEND ? &comm->last_send[t->peer] : &comm->last_recv[t->peer];
        if (*last > first) {
            t->waits = true;
            task_at(comm, *last - 1)->next = i + 1;
        }
        *last = i + 1;
    }
}

/* Collectives first, then all messages together: every rank orders a group the same way. */
static void record_queued(ncclComm_t comm)
{
    uint64_t first = comm->tasks_taken;

    for (int messages = 0; messages < 2; messages++)
        for (size_t i = 0; i < comm->nqueued; i++)
            if (is_message(&comm->queued[i].task) == messages) record(comm, &comm->queued[i].task);
    chain_messages(comm, first, comm->tasks_taken);
}

static size_t message_bytes(ncclComm_t comm, const struct kl_task *t)
{
    return t->count * comm->redops[t->type][ncclSum].elem_bytes;
}

/* The next queued message of the rank to itself with direction `coll`, from position `i`; nqueued if there is none. */
static size_t next_to_self(ncclComm_t comm, enum kl_coll coll, size_t i)
{
    while (i < comm->nqueued && (comm->queued[i].task.coll != coll || comm->queued[i].task.peer != comm->rank)) i++;
    return i;
}

/* Sends of the rank to itself and its receives from itself come in pairs of one size. */
static ncclResult_t check_self(ncclComm_t comm)
{
    size_t n = comm->nqueued, s = next_to_self(comm, KL_SEND, 0), r = next_to_self(comm, KL_RECV, 0);

    for (; s < n && r < n; s = next_to_self(comm, KL_SEND, s + 1), r = next_to_self(comm, KL_RECV, r + 1)) {
        size_t sent = message_bytes(comm, &comm->queued[s].task), received = message_bytes(comm, &comm->queued[r].task);
        if (sent != received)
            return KL_FAIL(ncclInvalidUsage, "rank %d sends %zu bytes to itself and receives %zu", comm->rank, sent,
                           received);
    }
    if (s < n || r < n)
        return KL_FAIL(ncclInvalidUsage, "rank %d has a %s itself without the opposite call in the same group",
                       comm->rank, s < n ? "send to" : "receive from");
    return ncclSuccess;
}

ncclResult_t kl_comm_prepare_queued(ncclComm_t comm)
{
    KL_TRY(check_self(comm));
    return make_room(comm, comm->nqueued);
}

void kl_comm_launch_queued(ncclComm_t comm)
{
    size_t n = comm->nqueued;

    if (!n) return;
    struct kl_stream *stream = comm->queued[n - 1].stream;
    uint32_t joins = push_joins(comm, stream);
    record_queued(comm);
    push_launch(comm, stream, (uint32_t)n, joins);
    comm->nqueued = 0;
}

void kl_comm_drop_queued(ncclComm_t comm)
{
    comm->nqueued = 0;
}
