/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's call: its streams and buffers, and its operations beside the other ranks' operations. */
#include "base/clock.h"
#include "coll/gpu/far.h"
#include "coll/gpu/graphs.h"
#include "coll/gpu/relay.h"
#include "coll/gpu/schedules.h"
#include "coll/gpu/stage.h"
#include "coll/gpu/submit.h"
#include "device/cuda/memory.h"
#include "os/thread.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_NS = 1000000,   /* between looks at flags that other threads set without a signal */
    FAR_LOOK_NS = 20000, /* and at words of other processes */
};

static const struct kl_gpu_worker *worker_of(const struct kl_gpu_team *team, int rank)
{
    return &team->worker[team->worker_of[rank]];
}

/* ---- checks ---- */

static ncclResult_t check_buffer(const struct kl_gpu_team *team, const struct kl_gpu_call *call,
                                 const struct kl_task *t, const struct kl_gpu_buffer *buffer)
{
    const struct kl_cuda_context *devices[KL_CUDA_DEVICES];
    char name[96];
    int n = 0;

    if (!buffer->bytes) return ncclSuccess;
    for (int i = 0; i < team->nworkers; i++)
        if (team->worker[i].context && (!team->relay || i == team->worker_of[call->rank]))
            devices[n++] = team->worker[i].context;
    snprintf(name, sizeof name, "%s of rank %d: %s", kl_func_info[t->func].name, call->rank, buffer->name);
    return kl_cuda_check(devices, n, name, buffer->ptr, buffer->bytes);
}

static ncclResult_t check_buffers(const struct kl_gpu_team *team, const struct kl_gpu_call *call,
                                  const struct kl_task *t)
{
    struct kl_gpu_buffer buffer[KL_GPU_BUFFERS];

    kl_gpu_buffers_of(t, call->rank, team->nranks, buffer);
    for (int i = 0; i < KL_GPU_BUFFERS; i++) KL_TRY(check_buffer(team, call, t, &buffer[i]));
    return ncclSuccess;
}

static ncclResult_t check_stream(const struct kl_cuda_driver *driver, const struct kl_gpu_call *call,
                                 kl_cu_stream stream, uint64_t *capture)
{
    int capturing = 0;

    *capture = 0;
    int rc = driver->cuStreamGetCaptureInfo(stream, &capturing, capture, NULL, NULL, NULL);
    if (rc)
        return KL_FAIL(ncclInvalidArgument, "rank %d: %p is no stream of CUDA: %s (%d)", call->rank, (void *)stream,
                       kl_cuda_error_name(driver, rc), rc);
    if (!capturing) *capture = 0;
    return ncclSuccess;
}

/* All streams of a call capture one graph, or none does. */
static ncclResult_t check_capture(struct kl_gpu_call *call, size_t i, uint64_t capture)
{
    if (!i) call->capture = capture;
    if (call->capture != capture)
        return KL_FAIL(ncclInvalidUsage, "rank %d: streams of a group capture different graphs, or some capture none",
                       call->rank);
    return ncclSuccess;
}

static ncclResult_t check_all(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    uint64_t capture = 0;

    const struct kl_cuda_driver *driver = worker_of(team, call->rank)->context->driver;

    for (size_t i = 0; i < call->nops; i++) {
        if (!i || call->op[i].stream != call->op[i - 1].stream)
            KL_TRY(check_stream(driver, call, call->op[i].stream, &capture));
        KL_TRY(check_capture(call, i, capture));
        KL_TRY(check_buffers(team, call, call->op[i].task));
    }
    if (!team->far) return ncclSuccess;
    KL_TRY(kl_gpu_stage_reserve(team, call));
    return team->relay ? kl_gpu_relay_reserve(team, call) : ncclSuccess;
}

ncclResult_t kl_gpu_check(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = worker_of(team, call->rank)->context;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = check_all(team, call);
    kl_cuda_leave(c);
    return rc;
}

/* ---- the program's streams ---- */

/* Is it the first operation of the call on its stream? */
static bool is_first_on_stream(const struct kl_gpu_call *call, size_t i)
{
    size_t j = 0;

    while (j < i && call->op[j].stream != call->op[i].stream) j++;
    return j == i;
}

/* The first stream waits for the others, so that its event stands for all. */
static ncclResult_t mark(const struct kl_gpu_call *call, const struct kl_cuda_context *c)
{
    kl_cu_stream first = call->op[0].stream;

    for (size_t i = 1; i < call->nops; i++) {
        if (!is_first_on_stream(call, i)) continue;
        KL_CUDA_TRY(c->driver, cuEventRecord(call->ready, call->op[i].stream), "rank %d: its stream on device %d",
                    call->rank, c->device);
        KL_CUDA_TRY(c->driver, cuStreamWaitEvent(first, call->ready, 0), "rank %d: its stream", call->rank);
    }
    KL_CUDA_TRY(c->driver, cuEventRecord(call->ready, first), "rank %d: its stream on device %d", call->rank,
                c->device);
    return ncclSuccess;
}

ncclResult_t kl_gpu_begin(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = worker_of(team, call->rank)->context;

    call->left = 0;
    call->waited = call->used = 0;
    call->apart = false;
    call->ready = team->ready[call->rank];
    if (team->nranks == 1) return ncclSuccess; /* submitted on the program's stream */
    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = mark(call, c);
    kl_cuda_leave(c);
    return rc;
}

static ncclResult_t follow(const struct kl_gpu_team *team, const struct kl_gpu_call *call, kl_cu_stream stream)
{
    for (int i = 0; i < team->nworkers; i++) {
        const struct kl_gpu_worker *w = &team->worker[i];
        if (!(call->used >> i & 1)) continue;
        KL_CUDA_TRY(w->context->driver, cuStreamWaitEvent(stream, w->end[call->end[i] % KL_GPU_ENDS], 0),
                    "rank %d: its stream", call->rank);
    }
    return ncclSuccess;
}

/* An event that was recorded again meanwhile ends later, with operations of other ranks. */
ncclResult_t kl_gpu_end(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = worker_of(team, call->rank)->context;
    ncclResult_t rc = ncclSuccess;

    if (!call->used && !call->apart) return ncclSuccess;
    KL_TRY(kl_cuda_enter(c));
    if (call->apart) rc = kl_gpu_graphs_join(team, call);
    for (size_t i = 0; !rc && i < call->nops; i++)
        if (is_first_on_stream(call, i)) rc = follow(team, call, call->op[i].stream);
    kl_cuda_leave(c);
    return rc;
}

/* ---- meeting: under lock ---- */

static void fail(struct kl_gpu_team *team, ncclResult_t rc)
{
    if (!rc || team->failed) return;
    team->failed = rc;
    snprintf(team->text, sizeof team->text, "%s", kl_error_text());
}

static void note_submitted(struct kl_gpu_op *op)
{
    op->call->left--;
}

/* Beside calls, submission of the next collective waits for this. */
static bool is_prepared(struct kl_gpu_team *team)
{
    struct kl_gpu_op *op[KL_JOB_RANKS];
    bool there = false;

    for (int r = 0; r < team->nranks; r++) op[r] = team->first[r]; /* NULL: of another process */
    fail(team, kl_gpu_prepare_collective(team, op, &there));
    return there;
}

/* All ranks have come to the next collective. */
static void take_collective(struct kl_gpu_team *team)
{
    struct kl_gpu_op *op[KL_JOB_RANKS];

    team->arrived = 0;
    for (int r = 0; r < team->nranks; r++) {
        op[r] = team->first[r];
        if (!op[r]) continue; /* of another process */
        team->first[r] = op[r]->next;
        if (!team->first[r]) team->last[r] = NULL;
        team->arrived += team->first[r] != NULL;
    }
    fail(team, kl_gpu_submit_collective(team, op));
    for (int r = 0; r < team->nranks; r++)
        if (!kl_gpu_is_far(team, r)) note_submitted(op[r]);
}

static bool all_have_come(struct kl_gpu_team *team)
{
    bool there = true;

    if (team->failed || team->arrived < team->members) return false;
    if (team->far) fail(team, kl_gpu_far_meet(team, &there));
    return there && !team->failed && is_prepared(team) && !team->failed;
}

static bool is_between_processes(const struct kl_gpu_team *team, const struct kl_gpu_op *op)
{
    return kl_gpu_is_far(team, op->task->peer);
}

/* Has a message before it in the list the same direction and peer? */
static bool is_behind_another(const struct kl_gpu_team *team, const struct kl_gpu_op *op)
{
    const struct kl_gpu_op *m = team->messages[op->call->rank];

    while (m != op && (m->task->func != op->task->func || m->task->peer != op->task->peer)) m = m->next;
    return m != op;
}

static void advance_messages(struct kl_gpu_team *team, int rank)
{
    for (struct kl_gpu_op **link = &team->messages[rank]; *link && !team->failed;) {
        struct kl_gpu_op *op = *link;
        bool over = false;
        if (is_between_processes(team, op) && !is_behind_another(team, op))
            fail(team, kl_gpu_submit_far_message(team, op, &over));
        if (over) {
            *link = op->next;
            note_submitted(op);
        } else {
            link = &op->next;
        }
    }
}

/*
 * A rank has come. With other processes nothing is submitted here, but where ranks wait, so in the order of a group's
 * communicators: two processes that submit in different orders may wait for each other at the heads of hardware queues.
 */
static void announce(struct kl_gpu_team *team)
{
    if (team->far)
        (void)all_have_come(team);
    else
        while (all_have_come(team)) take_collective(team);
}

/* Submit all that is complete. */
static void advance(struct kl_gpu_team *team)
{
    while (all_have_come(team)) take_collective(team);
    for (int r = 0; team->far && r < team->nranks; r++) advance_messages(team, r);
}

static void link_collective(struct kl_gpu_team *team, struct kl_gpu_op *op)
{
    const int rank = op->call->rank;

    op->next = NULL;
    if (team->last[rank])
        team->last[rank]->next = op;
    else
        team->first[rank] = op;
    team->arrived += !team->last[rank];
    team->last[rank] = op;
    announce(team);
}

/* The link to the first waiting message of the peer that is the other side of `op`; NULL: none. */
static struct kl_gpu_op **find_other_side(struct kl_gpu_team *team, const struct kl_gpu_op *op)
{
    const int wanted = op->task->func == KL_FUNC_SEND ? KL_FUNC_RECV : KL_FUNC_SEND;

    for (struct kl_gpu_op **link = &team->messages[op->task->peer]; *link; link = &(*link)->next)
        if ((*link)->task->func == wanted && (*link)->task->peer == op->call->rank) return link;
    return NULL;
}

static void link_message(struct kl_gpu_team *team, struct kl_gpu_op *op)
{
    struct kl_gpu_op **link = is_between_processes(team, op) ? NULL : find_other_side(team, op);
    struct kl_gpu_op *other = link ? *link : NULL;

    op->posted = 0;
    if (!other) {
        for (link = &team->messages[op->call->rank]; *link; link = &(*link)->next) {
        }
        op->next = NULL;
        *link = op;
        return;
    }
    *link = other->next;
    fail(team, op->task->func == KL_FUNC_SEND ? kl_gpu_submit_message(team, op, other)
                                              : kl_gpu_submit_message(team, other, op));
    note_submitted(op);
    note_submitted(other);
}

void kl_gpu_arrive(struct kl_gpu_team *team, struct kl_gpu_call *call, bool messages)
{
    const size_t from = messages ? call->ncollectives : 0, to = messages ? call->nops : call->ncollectives;

    if (from == to) return;
    pthread_mutex_lock(&team->lock);
    call->left += to - from;
    team->caller[call->rank] = kl_thread_self();
    for (size_t i = from; i < to && !team->failed; i++) {
        call->op[i].call = call;
        if (messages)
            link_message(team, &call->op[i]);
        else
            link_collective(team, &call->op[i]);
    }
    for (int r = 0; messages && team->far && r < team->nranks; r++) advance_messages(team, r);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

/* ---- waiting ---- */

static void unlink_messages(struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    for (struct kl_gpu_op **link = &team->messages[call->rank]; *link;) {
        if ((*link)->call == call)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
}

/* A rank has one call at a time: all its linked operations are of this one. Under lock. */
static void withdraw(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    team->arrived -= team->first[call->rank] != NULL;
    team->first[call->rank] = team->last[call->rank] = NULL;
    unlink_messages(team, call);
    call->left = 0;
}

/* Wait for a signal, or a moment. Under lock. */
static void wait_a_moment(struct kl_gpu_team *team)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += team->far ? FAR_LOOK_NS : LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&team->changed, &team->lock, &until);
}

static bool has_not_come(const struct kl_gpu_team *team, int rank)
{
    return kl_gpu_is_far(team, rank) ? !kl_gpu_far_has_come(team, rank) : !team->first[rank];
}

static bool lacks_memory(const struct kl_gpu_team *team, int rank)
{
    return kl_gpu_schedules_lack(team->schedules, rank);
}

/* As "1, 2, 3". */
static void list_ranks(const struct kl_gpu_team *team, bool (*is_one)(const struct kl_gpu_team *team, int rank),
                       char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (int r = 0; r < team->nranks && used + 16 < size; r++)
        if (is_one(team, r)) used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", r);
}

/* The ranks for whose calls an operation waits. */
static void list_missing(const struct kl_gpu_team *team, const struct kl_gpu_call *call, char *text, size_t size)
{
    const struct kl_gpu_op *m = team->messages[call->rank];

    *text = '\0';
    if (team->first[call->rank])
        list_ranks(team, has_not_come, text, size);
    else if (m)
        snprintf(text, size, "%d", m->task->peer);
}

static const struct kl_task *first_waiting(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    const struct kl_gpu_op *op = team->first[call->rank] ? team->first[call->rank] : team->messages[call->rank];

    return op ? op->task : call->op[0].task;
}

/* All have called, and a process has stopped since, or is slow; or its memory comes just now. */
static ncclResult_t late_memory(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    char missing[256];

    list_ranks(team, lacks_memory, missing, sizeof missing);
    return KL_FAIL(ncclSystemError,
                   "%s of rank %d has waited KOLO_TIMEOUT for the memory for schedules of %s%s: has a process stopped?",
                   kl_func_info[first_waiting(team, call)->func].name, call->rank, *missing ? "rank " : "other ranks",
                   missing);
}

static ncclResult_t late(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    char missing[256];

    list_missing(team, call, missing, sizeof missing);
    if (!*missing && team->schedules) return late_memory(team, call);
    return KL_FAIL(ncclSystemError,
                   "%s of rank %d has waited KOLO_TIMEOUT for the call of rank %s: ranks of one thread need "
                   "ncclGroupStart and ncclGroupEnd around their calls",
                   kl_func_info[first_waiting(team, call)->func].name, call->rank, missing);
}

/* Does a call of this thread have to come first? Ranks that another thread speaks for may still call. */
static bool waits_for_itself(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    const struct kl_gpu_op *message = team->messages[call->rank];

    if (!team->first[call->rank]) return message && team->caller[message->task->peer] == kl_thread_self();
    for (int r = 0; r < team->nranks; r++)
        if (!team->first[r] && team->caller[r] != kl_thread_self()) return false;
    return true;
}

static ncclResult_t alone(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    char missing[256];

    list_missing(team, call, missing, sizeof missing);
    return KL_FAIL(ncclInvalidUsage,
                   "%s of rank %d waits for the call of rank %s, which is this thread's as well: put the calls of a "
                   "thread's ranks between ncclGroupStart and ncclGroupEnd",
                   kl_func_info[first_waiting(team, call)->func].name, call->rank, missing);
}

/* Under lock. */
static ncclResult_t wait_for_others(struct kl_gpu_team *team, struct kl_gpu_call *call, _Atomic uint32_t *stop,
                                    const struct kl_gpu_limits *limits)
{
    while (call->left && !team->failed && !kl_load_acquire(stop)) { /* pairs with kl_comm_fail */
        if (team->far) advance(team);
        if (!call->left || team->failed) break;
        if (kl_deadline_passed(limits->deadline)) return late(team, call);
        if (kl_deadline_passed(limits->alone) && waits_for_itself(team, call)) return alone(team, call);
        wait_a_moment(team);
    }
    if (team->failed) {
        kl_error_adopt(team->text);
        return team->failed;
    }
    return call->left ? ncclInternalError : ncclSuccess;
}

ncclResult_t kl_gpu_wait(struct kl_gpu_team *team, struct kl_gpu_call *call, _Atomic uint32_t *stop,
                         const struct kl_gpu_limits *limits)
{
    pthread_mutex_lock(&team->lock);
    ncclResult_t rc = wait_for_others(team, call, stop, limits);
    if (rc) withdraw(team, call);
    pthread_mutex_unlock(&team->lock);
    return rc;
}
