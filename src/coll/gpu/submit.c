/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/submit.h"

#include "base/log.h"
#include "coll/gpu/far.h"
#include "coll/gpu/flags.h"
#include "coll/gpu/graphs.h"
#include "coll/gpu/mover.h"
#include "coll/gpu/order.h"
#include "coll/gpu/relay.h"
#include "coll/gpu/stage.h"
#include "coll/schedule/signature.h"

#include <stdio.h>
#include <string.h>

enum { SLICE = 128 << 10 }; /* bytes below which a further GPU costs more than its share of the work saves */

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

/* A single rank needs no other stream than the program's. */
static bool is_alone(const struct kl_gpu_team *team)
{
    return team->nranks == 1;
}

/* ---- other processes ---- */

static bool is_collective_of_several(const struct kl_gpu_share *s)
{
    return s->team->far && !kl_func_is_message(s->task->func);
}

/* The worker reads and writes the buffers of all. */
static ncclResult_t wait_for_processes(const struct kl_gpu_share *s)
{
    const struct kl_gpu_far *far = s->team->far;

    if (!is_collective_of_several(s)) return ncclSuccess;
    for (int p = 0; p < far->nprocesses; p++)
        if (p != far->own) KL_TRY(kl_gpu_far_await_arrived(s->team, s->worker, p));
    return ncclSuccess;
}

static ncclResult_t tell_processes(const struct kl_gpu_share *s)
{
    return is_collective_of_several(s) ? kl_gpu_far_say_done(s->team, s->worker) : ncclSuccess;
}

/* ---- graphs ---- */

/* Work of a graph and other work know no events of each other, and need none: the program's streams order them. */
static void begin_capture(struct kl_gpu_team *team, uint64_t capture)
{
    if (team->capture == capture) return;
    team->capture = capture;
    if (team->far && capture) kl_store_relaxed(&team->far->captures, true);
    for (int w = 0; w < team->nworkers; w++)
        for (int i = 0; i < team->nworkers; i++) team->worker[w].seen[i] = team->worker[i].collective;
}

static ncclResult_t capture_differs(int a, int b)
{
    return KL_FAIL(ncclInvalidUsage,
                   "of ranks %d and %d, one captures the operation into a graph, and one does not: capture it on all "
                   "ranks, or on none",
                   a < b ? a : b, a < b ? b : a);
}

/* All ranks capture, or none does. */
static ncclResult_t check_capture(struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n)
{
    const struct kl_gpu_call *first = NULL;

    for (int r = 0; r < n; r++) {
        const struct kl_gpu_call *call = op[r]->call;
        if (call && !first) first = call;
        if (call && !call->capture != !first->capture) return capture_differs(first->rank, call->rank);
    }
    for (int r = 0; r < n; r++)
        if (!op[r]->call && team->far->current[r]->captured != (first->capture != 0))
            return capture_differs(first->rank, r);
    begin_capture(team, first->capture);
    return ncclSuccess;
}

/* ---- at flags ---- */

static bool meets(const struct kl_gpu_share *s)
{
    return s->team->meets && !kl_func_is_message(s->task->func);
}

/* The operations of the ranks on this worker; returns their number. */
static int own_ops(const struct kl_gpu_share *s, const struct kl_gpu_worker *w, struct kl_gpu_op **own)
{
    int n = 0;

    for (int r = 0; r < s->ranks; r++)
        if (&s->team->worker[s->team->worker_of[r]] == w) own[n++] = s->op[r];
    return n;
}

/* For the calls of own ranks, and for earlier work. */
static ncclResult_t wait_for_own(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s,
                                 struct kl_gpu_worker *w)
{
    struct kl_gpu_op *own[KL_JOB_RANKS];

    (void)mover;
    return kl_gpu_wait_for_all(s->team, w, own, own_ops(s, w, own));
}

/* Its kernel meets the kernels of the others. */
static ncclResult_t move_alone(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s, struct kl_gpu_worker *w)
{
    struct kl_gpu_op *own[KL_JOB_RANKS];

    KL_TRY(mover->move(s));
    return kl_gpu_record_end(s->team, w, own, own_ops(s, w, own));
}

/* No mover: the other GPUs use buffers of this one. */
static ncclResult_t move_between_meetings(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s,
                                          struct kl_gpu_worker *w)
{
    struct kl_gpu_op *own[KL_JOB_RANKS];

    KL_TRY(kl_gpu_flags_meet(s->team, w));
    if (mover) KL_TRY(mover->move(s));
    KL_TRY(kl_gpu_flags_meet(s->team, w));
    return kl_gpu_record_end(s->team, w, own, own_ops(s, w, own));
}

/* ---- a worker's share ---- */

/* Of a communicator with one rank, on the program's stream; the worker's follows it, so that the end of the communicator waits
 * for it. A graph runs on later streams. */
static ncclResult_t move_single(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s, struct kl_gpu_worker *w)
{
    const struct kl_cuda_driver *driver = w->context->driver;

    KL_TRY(mover->move(s));
    if (s->team->capture) return ncclSuccess;
    KL_CUDA_TRY(driver, cuEventRecord(w->end[0], s->stream), "device %d", w->context->device);
    KL_CUDA_TRY(driver, cuStreamWaitEvent(w->stream, w->end[0], 0), "device %d", w->context->device);
    return ncclSuccess;
}

static ncclResult_t move_in_order(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s,
                                  struct kl_gpu_worker *w)
{
    if (is_alone(s->team)) return move_single(mover, s, w);
    if (meets(s)) return move_between_meetings(mover, s, w);
    KL_TRY(kl_gpu_wait_for_all(s->team, w, s->op, s->ranks));
    KL_TRY(wait_for_processes(s));
    KL_TRY(mover->move(s));
    KL_TRY(tell_processes(s));
    return kl_gpu_record_end(s->team, w, s->op, s->ranks);
}

/* With the buffers as this worker sees them. */
static ncclResult_t look_and_move(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_share *s)
{
    if (is_collective_of_several(s)) KL_TRY(kl_gpu_far_look(team, w, (struct kl_gpu_op **)s->op));
    s->task = s->op[0]->task;
    return move_in_order(kl_gpu_mover_of(team->mover, s), s, w);
}

static ncclResult_t run_on(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_share s)
{
    team->works |= (uint64_t)1 << number_of(team, w);
    if (!w->submits && !kl_func_is_message(s.task->func)) return ncclSuccess;
    s.worker = w;
    s.stream = is_alone(team) ? s.op[0]->stream : w->stream;
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = look_and_move(team, w, &s);
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

static bool is_in_slices(const struct kl_gpu_share *s)
{
    return kl_func_info[s->task->func].reduces && !kl_func_info[s->task->func].send_parts;
}

static uint64_t first_workers(int n)
{
    return n < KL_CUDA_DEVICES ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

/* The GPUs that work for a collective. */
static uint64_t workers_of(const struct kl_gpu_team *team, const struct kl_gpu_share *s)
{
    if (team->relay) return first_workers(team->nworkers);
    if (is_in_slices(s)) return first_workers(slices_of(team, s));
    if (s->task->func == KL_FUNC_BROADCAST) return (uint64_t)1 << team->worker_of[s->task->peer];
    return first_workers(team->nworkers);
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
        if (kl_gpu_is_far(team, r)) {
            call[r].call = team->far->current[r]->call;
            continue;
        }
        call[r].call = kl_call_of(t->func, t->type, kl_task_op_code(t), t->peer, t->count, t->number);
        if (t->limits) call[r].call = kl_call_configured(call[r].call, t->limits);
    }
    if (!kl_call_verdict(call, team->nranks, op[0]->task->number, text, sizeof text, &culprit)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s", text);
}

/* Own GPUs wait for the copies, too. */
static ncclResult_t fill_stages(struct kl_gpu_team *team, struct kl_gpu_worker *leader, struct kl_gpu_op *const *op)
{
    bool some = false;

    for (int r = 0; r < team->nranks; r++) {
        if (kl_gpu_is_far(team, r)) continue;
        some |= kl_gpu_stage_has_input(op[r]);
        KL_TRY(kl_gpu_stage_in(team, leader, op[r]));
    }
    return some ? kl_gpu_record_end(team, leader, op, team->nranks) : ncclSuccess;
}

/* When the own GPUs are done, too. */
static ncclResult_t empty_stages(struct kl_gpu_team *team, struct kl_gpu_worker *leader, struct kl_gpu_op *const *op)
{
    for (int r = 0; r < team->nranks; r++) {
        if (kl_gpu_is_far(team, r) || !kl_gpu_stage_has_result(op[r])) continue;
        KL_TRY(kl_gpu_wait_for_workers(team, leader));
        KL_TRY(kl_gpu_stage_out(team, leader, op[r]));
    }
    return ncclSuccess;
}

/* For other processes: when this one's streams have come to the operation. */
static ncclResult_t say_arrived(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    struct kl_gpu_worker *leader = &team->worker[team->leader];

    KL_TRY(kl_gpu_wait_for_all(team, leader, op, team->nranks));
    KL_TRY(fill_stages(team, leader, op));
    return team->meets ? ncclSuccess : kl_gpu_far_say_arrived(team, leader);
}

/* This process's streams go on when the GPUs of the others are done, too. */
static ncclResult_t await_processes(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    struct kl_gpu_worker *leader = &team->worker[team->leader];

    for (int i = 0; i < team->nworkers; i++)
        if (team->works >> i & 1 && !team->worker[i].submits && !team->meets)
            KL_TRY(kl_gpu_far_await_done(team, leader, i));
    KL_TRY(empty_stages(team, leader, op));
    return kl_gpu_record_end(team, leader, op, team->nranks);
}

static ncclResult_t on_leader(struct kl_gpu_team *team, struct kl_gpu_op *const *op,
                              ncclResult_t (*step)(struct kl_gpu_team *team, struct kl_gpu_op *const *op))
{
    const struct kl_cuda_context *c = team->worker[team->leader].context;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = step(team, op);
    kl_cuda_leave(c);
    return rc;
}

/* On each GPU of this process that has no share yet. */
static ncclResult_t run_elsewhere(struct kl_gpu_team *team, struct kl_gpu_share s, const struct kl_gpu_mover *mover,
                                  ncclResult_t (*step)(const struct kl_gpu_mover *mover, const struct kl_gpu_share *s,
                                                       struct kl_gpu_worker *w))
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < team->nworkers && !rc; i++) {
        struct kl_gpu_worker *w = &team->worker[i];
        if (!w->submits || team->works >> i & 1) continue;
        s.worker = w;
        s.stream = w->stream;
        KL_TRY(kl_cuda_enter(w->context));
        rc = step(mover, &s, w);
        kl_cuda_leave(w->context);
    }
    return rc;
}

static void log_way(const struct kl_gpu_share *s, const struct kl_gpu_mover *mover)
{
    const char *at = mover->meets        ? mover->way
                     : s->team->meets    ? "between meetings at flags"
                     : s->team->far      ? "behind words in memory"
                     : is_alone(s->team) ? "alone"
                                         : "behind events";

    KL_INFO(KL_TUNING, "%s: %zu bytes on GPUs by %s, %s", kl_func_info[s->task->func].name, s->task->count * s->bytes,
            mover->name, at);
}

/* Each GPU by itself, with a mover that meets. No stream waits for the operation's end on another GPU, which waits for it:
 * all wait for earlier work before any has work of this operation. */
static ncclResult_t run_alone(struct kl_gpu_team *team, struct kl_gpu_share s, const struct kl_gpu_mover *mover)
{
    log_way(&s, mover);
    team->works = 0;
    KL_TRY(run_elsewhere(team, s, NULL, wait_for_own));
    return run_elsewhere(team, s, mover, move_alone);
}

static ncclResult_t on_worker(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op,
                              ncclResult_t (*step)(struct kl_gpu_team *team, struct kl_gpu_worker *w,
                                                   struct kl_gpu_op *const *op, int n))
{
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = step(team, w, op, team->nranks);
    kl_cuda_leave(w->context);
    return rc;
}

/* Kernels that wait for each other: none of their streams waits for one of them. */
static ncclResult_t run_together(struct kl_gpu_team *team, struct kl_gpu_share s, const struct kl_gpu_mover *mover)
{
    log_way(&s, mover);
    team->works = 0;
    for (int i = 0; i < team->nworkers; i++)
        if (team->worker[i].context) KL_TRY(on_worker(team, &team->worker[i], s.op, kl_gpu_wait_for_all));
    KL_TRY(mover->move_all(&s));
    for (int i = 0; i < team->nworkers; i++) {
        if (!team->worker[i].context) continue;
        team->works |= (uint64_t)1 << i;
        KL_TRY(on_worker(team, &team->worker[i], s.op, kl_gpu_record_end));
    }
    return ncclSuccess;
}

static ncclResult_t run(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    const struct kl_gpu_share s = share_of(team, op, team->nranks);
    const struct kl_gpu_mover *mover = kl_gpu_mover_of(team->mover, &s);

    log_way(&s, mover);
    team->works = 0;
    if (team->meets) KL_TRY(run_elsewhere(team, s, NULL, wait_for_own)); /* as above */
    KL_TRY(is_in_slices(&s) ? run_slices(team, s) : run_parts(team, s));
    return team->meets ? run_elsewhere(team, s, NULL, move_between_meetings) : ncclSuccess;
}

/* No process looks at another one's buffers, or waits for it at a word. */
static const struct kl_gpu_mover *mover_that_meets(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    const struct kl_gpu_share s = share_of(team, op, team->nranks);
    const struct kl_gpu_mover *mover = team->relay ? NULL : kl_gpu_mover_of(team->mover, &s);

    return mover && mover->meets ? mover : NULL;
}

/* All processes say that they have arrived before any waits for the others. */
static ncclResult_t begin_far(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    if (!team->far || team->relay) return ncclSuccess;
    KL_TRY(kl_gpu_far_reserve(team));
    return mover_that_meets(team, op) ? ncclSuccess : on_leader(team, op, say_arrived);
}

static ncclResult_t end_far(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    if (!team->far || team->relay || mover_that_meets(team, op)) return ncclSuccess;
    return on_leader(team, op, await_processes);
}

static void log_refusal(struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    const struct kl_gpu_share s = share_of(team, op, team->nranks);

    kl_gpu_schedule_log_refusal(&s);
    kl_gpu_nvls_log_refusal(&s);
}

static ncclResult_t run_here(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    struct kl_gpu_op *moved[KL_JOB_RANKS]; /* on the stages */
    const struct kl_gpu_mover *mover = mover_that_meets(team, op);

    if (mover) return (mover->move_all ? run_together : run_alone)(team, share_of(team, op, team->nranks), mover);
    log_refusal(team, op);
    if (team->relay) return kl_gpu_relay_collective(team, op);
    if (!team->far) return run(team, op);
    memcpy(moved, op, (size_t)team->nranks * sizeof(void *));
    kl_gpu_stage_use(team, moved);
    return run(team, moved);
}

static ncclResult_t run_everywhere(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    KL_TRY(begin_far(team, op));
    KL_TRY(run_here(team, op));
    return end_far(team, op);
}

/* The leader's graph speaks with other processes. */
static ncclResult_t run_in_graphs(struct kl_gpu_team *team, struct kl_gpu_op **op, uint64_t workers)
{
    KL_TRY(kl_gpu_graphs_gather(team));
    KL_TRY(begin_far(team, op));
    KL_TRY(kl_gpu_graphs_spread(team, workers));
    KL_TRY(run_here(team, op));
    KL_TRY(kl_gpu_graphs_collect(team, workers));
    KL_TRY(end_far(team, op));
    return kl_gpu_graphs_let_go(team);
}

static ncclResult_t run_captured(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    const struct kl_gpu_share s = share_of(team, op, team->nranks);

    if (is_alone(team) || !kl_gpu_graphs_are_needed(team, op, team->nranks, first_workers(team->nworkers)))
        return run_everywhere(team, op);
    KL_TRY(kl_gpu_graphs_enter(team, op, team->nranks));
    ncclResult_t rc = run_in_graphs(team, op, workers_of(team, &s));
    kl_gpu_graphs_leave(team);
    return rc;
}

/* All processes make the same of it: it is the same call on all ranks. */
static ncclResult_t look_and_check(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    if (team->far) KL_TRY(kl_gpu_far_look(team, NULL, op));
    KL_TRY(compare(team, op));
    return check_capture(team, op, team->nranks);
}

ncclResult_t kl_gpu_prepare_collective(struct kl_gpu_team *team, struct kl_gpu_op **op, bool *there)
{
    *there = true;
    if (!team->schedules) return ncclSuccess;
    KL_TRY(look_and_check(team, op));
    const struct kl_gpu_share s = share_of(team, op, team->nranks);
    const struct kl_gpu_mover *mover = kl_gpu_mover_of(team->mover, &s);
    return mover->prepare ? mover->prepare(&s, there) : ncclSuccess;
}

ncclResult_t kl_gpu_submit_collective(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    KL_TRY(look_and_check(team, op));
    team->meets = !team->relay && kl_gpu_meets(team, team->capture != 0);
    KL_TRY(team->capture ? run_captured(team, op) : run_everywhere(team, op));
    if (team->far) kl_gpu_far_next(team);
    return ncclSuccess;
}

/* ---- messages ---- */

static ncclResult_t move_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv)
{
    struct kl_gpu_op *const op[] = {send, recv};

    if (kl_gpu_is_relayed(team, send->call->rank, recv->call->rank)) return kl_gpu_relay_message(team, send, recv);
    return run_on(team, &team->worker[team->worker_of[recv->call->rank]], share_of(team, op, 2));
}

/* The receiver's stream moves the data, and the sender's waits for it. */
static ncclResult_t move_in_graphs(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv)
{
    KL_TRY(kl_gpu_graphs_pass(team, send->call, recv->call));
    KL_TRY(move_message(team, send, recv));
    return kl_gpu_graphs_pass(team, recv->call, send->call);
}

static uint64_t workers_of_both(const struct kl_gpu_team *team, struct kl_gpu_op *const *op)
{
    return (uint64_t)1 << team->worker_of[op[0]->call->rank] | (uint64_t)1 << team->worker_of[op[1]->call->rank];
}

ncclResult_t kl_gpu_submit_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv)
{
    struct kl_gpu_op *const op[] = {send, recv};
    char text[KL_CALL_TEXT];

    if (send->task->type != recv->task->type || send->task->count != recv->task->count)
        return KL_FAIL(ncclInvalidUsage, "rank %d: %s", recv->call->rank,
                       kl_message_differs(kl_message_signature(send->task->type, send->task->count), send->call->rank,
                                          kl_message_signature(recv->task->type, recv->task->count), text));
    KL_TRY(check_capture(team, op, 2));
    if (!team->capture || !kl_gpu_graphs_are_needed(team, op, 2, workers_of_both(team, op)))
        return move_message(team, send, recv);
    KL_TRY(kl_gpu_graphs_enter(team, (struct kl_gpu_op *[]){recv, send}, 2));
    ncclResult_t rc = move_in_graphs(team, send, recv);
    kl_gpu_graphs_leave(team);
    return rc;
}

/* ---- messages to other processes ---- */

static struct kl_gpu_worker *own_worker(struct kl_gpu_team *team, const struct kl_gpu_op *op)
{
    return &team->worker[team->worker_of[op->call->rank]];
}

/* The data are where the export handle says when the stream has come there. */
static ncclResult_t offer(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *op,
                          struct kl_gpu_export_handle *exported)
{
    struct kl_gpu_buffer b[KL_GPU_BUFFERS];

    if (kl_gpu_is_relayed(team, op->call->rank, op->task->peer)) return kl_gpu_relay_put(team, w, op, exported);
    kl_gpu_buffers_of(op->task, op->call->rank, team->nranks, b);
    KL_TRY(kl_gpu_far_export_of(w->context, op, &b[KL_GPU_SEND], KL_GPU_SEND, exported));
    return kl_gpu_stage_in(team, w, op);
}

static ncclResult_t post(struct kl_gpu_team *team, struct kl_gpu_op *op, struct kl_gpu_mail *mail)
{
    struct kl_gpu_worker *w = own_worker(team, op);
    const struct kl_task *t = op->task;
    const uint64_t number = kl_load_relaxed(&mail->posted) + 1;

    begin_capture(team, op->call->capture);
    KL_TRY(kl_gpu_far_message_word(team, op->call->rank, t->peer, &op->word));
    if (team->capture) team->far->sent[op->call->rank]++;
    mail->word = op->word;
    mail->captured = team->capture != 0;
    mail->signature = kl_message_signature(t->type, t->count);
    KL_TRY(kl_gpu_wait_for_all(team, w, &op, 1));
    KL_TRY(offer(team, w, op, &mail->buffer));
    KL_TRY(kl_gpu_far_say(team, w, op->word, number));
    op->posted = number;
    kl_store_release(&mail->posted, number); /* pairs with kl_gpu_submit_far_message of the receiver */
    return ncclSuccess;
}

static ncclResult_t await_taken(struct kl_gpu_team *team, struct kl_gpu_op *op)
{
    struct kl_gpu_worker *w = own_worker(team, op);

    begin_capture(team, op->call->capture);
    KL_TRY(kl_gpu_far_await(team, w, op->word + 1, op->posted));
    return kl_gpu_record_end(team, w, &op, 1);
}

/* From the sender's memory, which this process maps. */
static ncclResult_t fetch(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *op,
                          const struct kl_gpu_mail *mail)
{
    struct kl_task task = *op->task;
    struct kl_gpu_op send = {.task = &task}, *both[] = {&send, op};
    struct kl_gpu_share s = share_of(team, both, 2);
    void *at;

    team->far->looks++;
    KL_TRY(kl_gpu_far_import(team, w, op->task->peer, &mail->buffer, &at));
    task.func = KL_FUNC_SEND;
    task.send = at;
    s.worker = w;
    s.stream = w->stream;
    return kl_gpu_mover_of(team->mover, &s)->move(&s);
}

static ncclResult_t take(struct kl_gpu_team *team, struct kl_gpu_op *op, struct kl_gpu_mail *mail)
{
    const int from = op->task->peer, to = op->call->rank;
    const uint64_t number = kl_load_relaxed(&mail->taken) + 1;
    struct kl_gpu_worker *w = own_worker(team, op);
    const uint64_t mine = kl_message_signature(op->task->type, op->task->count);
    char text[KL_CALL_TEXT];

    if (mail->signature != mine)
        return KL_FAIL(ncclInvalidUsage, "rank %d: %s", to, kl_message_differs(mail->signature, from, mine, text));
    if (mail->captured != (op->call->capture != 0)) return capture_differs(from, to);
    begin_capture(team, op->call->capture);
    KL_TRY(kl_gpu_wait_for_all(team, w, &op, 1));
    KL_TRY(kl_gpu_far_await(team, w, mail->word, number));
    KL_TRY(kl_gpu_is_relayed(team, from, to) ? kl_gpu_relay_get(team, w, op, &mail->buffer) : fetch(team, w, op, mail));
    KL_TRY(kl_gpu_far_say(team, w, mail->word + 1, number));
    KL_TRY(kl_gpu_record_end(team, w, &op, 1));
    kl_store_release(&mail->taken, number); /* pairs with kl_gpu_submit_far_message of the sender */
    return ncclSuccess;
}

static ncclResult_t send_step(struct kl_gpu_team *team, struct kl_gpu_op *op, bool *over)
{
    struct kl_gpu_mail *mail = kl_gpu_mail_of(team->far, op->call->rank, op->task->peer);
    const uint64_t taken = kl_load_acquire(&mail->taken); /* pairs with take */

    if (!op->posted && taken == kl_load_relaxed(&mail->posted)) return post(team, op, mail);
    if (!op->posted || taken < op->posted) return ncclSuccess;
    *over = true;
    return await_taken(team, op);
}

static ncclResult_t recv_step(struct kl_gpu_team *team, struct kl_gpu_op *op, bool *over)
{
    struct kl_gpu_mail *mail = kl_gpu_mail_of(team->far, op->task->peer, op->call->rank);

    if (kl_load_acquire(&mail->posted) == kl_load_relaxed(&mail->taken)) return ncclSuccess; /* pairs with post */
    *over = true;
    return take(team, op, mail);
}

/* The worker's stream may be part of another rank's graph. Both steps of a message are on one stream. */
static bool is_in_its_graph(const struct kl_gpu_team *team, struct kl_gpu_op *op)
{
    if (!op->call->capture || op->posted) return op->apart;
    return kl_gpu_graphs_are_needed(team, &op, 1, (uint64_t)1 << team->worker_of[op->call->rank]);
}

ncclResult_t kl_gpu_submit_far_message(struct kl_gpu_team *team, struct kl_gpu_op *op, bool *over)
{
    const struct kl_cuda_context *c = own_worker(team, op)->context;

    *over = false;
    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = is_in_its_graph(team, op) ? kl_gpu_graphs_enter(team, &op, 1) : ncclSuccess;
    if (!rc) rc = op->task->func == KL_FUNC_SEND ? send_step(team, op, over) : recv_step(team, op, over);
    kl_gpu_graphs_leave(team);
    kl_cuda_leave(c);
    return rc;
}
