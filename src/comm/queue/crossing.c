/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/crossing.h"

#include "coll/select/select.h"
#include "comm/queue/record.h"
#include "device/cuda/rdma.h"
#include "device/host/idle.h"

#include <stdlib.h>

enum { KNOWN = 256 }; /* allocations, by their numbers */

/* A direction of messages with a peer, and how a NIC gets at memory of this rank's GPU for them. */
struct way {
    bool known;
    struct kl_net_reach reach;
};

/* May NICs use an allocation? */
struct allocation {
    uint64_t id; /* 0: none */
    unsigned memory;
    bool has;
};

struct kl_crossing {
    struct kl_gpu_hosts *hosts; /* shared by the ranks of the process */
    struct kl_gpu_gate *gate;
    struct kl_stream *engine;
    struct kl_gpu_rounds rounds; /* of the call in progress */
    size_t limit;                /* bytes of a round */
    size_t nic_from;             /* bytes of a message that NICs may move themselves, at least */
    struct way *way;             /* by peer, from and to it */
    struct allocation allocation[KNOWN];
    uint64_t queued; /* ticket behind the last round */
    bool serves;     /* notices: graphs were captured */
    uint64_t served; /* the ticket of serve */
    _Atomic bool ends;
    struct kl_gpu_notice *current; /* the engine's, as the next ones */
    struct kl_work launch;
    uint64_t polls;
};

/* Arguments of the engine's waits and signals. */
enum { GATE, NUMBER, POLLS, HELD = POLLS };
enum { POLLS_PER_CHECK = 256 }; /* of a wait, between questions whether CUDA has failed */

/* ---- life ---- */

bool kl_crossing_is_needed(const struct ncclComm *comm)
{
    const struct kl_peer *first = comm->peers;
    int r = 1;

    while (r < comm->nranks && first[r].host == first->host && kl_peers_share_memory(&first[r], first)) r++;
    return r < comm->nranks;
}

ncclResult_t kl_crossing_lead(ncclComm_t comm, const struct kl_gpu_place *place)
{
    return kl_gpu_hosts_create(place, comm->nranks, &comm->shared->gpu_hosts);
}

ncclResult_t kl_crossing_create(ncclComm_t comm, struct kl_crossing **out)
{
    struct kl_crossing *x = calloc(1, sizeof *x);
    struct kl_device_config config;

    *out = x;
    if (!x) return KL_NOMEM("a communicator on GPUs of several hosts");
    kl_param_load(&kl_device_param_set, &config);
    x->limit = (size_t)config.cuda_round;
    x->nic_from = (size_t)config.cuda_rdma;
    x->way = calloc(2 * (size_t)comm->nranks, sizeof *x->way);
    if (!x->way) return KL_NOMEM("a communicator on GPUs of several hosts");
    x->hosts = comm->shared->gpu_hosts;
    kl_gpu_hosts_ref(x->hosts);
    kl_gpu_hosts_note_caller(x->hosts, comm->rank, comm->creator);
    x->gate = kl_gpu_hosts_gate(x->hosts, comm->rank);
    KL_TRY(kl_stream_create_on(comm->device, 0, &x->engine));
    kl_store_relaxed(&x->engine->flags, kl_load_relaxed(&x->engine->flags) | KL_STREAM_IS_INTERNAL);
    return ncclSuccess;
}

void kl_crossing_release(struct kl_crossing *x)
{
    if (x->hosts) kl_gpu_hosts_release(x->hosts);
}

/* Calls are waited for, replays are not. */
static void end_serving(struct kl_crossing *x, bool failed)
{
    if (!x->serves) return;
    if (!failed) (void)kl_gpu_gate_synchronize(x->gate);
    kl_store_release(&x->ends, true); /* pairs with serve */
    kl_idle_notify();
    kl_stream_wait(x->engine, x->served + 1);
}

/* The engine's work gives up the transfers of a failed communicator that a NIC has begun. */
static void await_nics(struct kl_crossing *x)
{
    if (x->engine && x->gate && kl_load_seq_cst(&x->gate->held)) kl_stream_wait(x->engine, x->queued);
}

void kl_crossing_settle(struct kl_crossing *x)
{
    if (x->gate) kl_gpu_gate_settle(x->gate);
}

/* Work of a failed communicator may still be queued. */
static void drop_engine(ncclComm_t comm, struct kl_crossing *x)
{
    if (!x->engine) return;
    kl_stream_release(x->engine);
    comm->last_stream = NULL;
}

void kl_crossing_free(ncclComm_t comm, struct kl_crossing *x, bool failed)
{
    if (!x) return;
    end_serving(x, failed);
    await_nics(x);
    if (x->hosts) (void)kl_gpu_hosts_leave(x->hosts, failed, kl_comm_failure_text(comm));
    drop_engine(comm, x);
    kl_gpu_rounds_free(&x->rounds);
    free(x->way);
    free(x);
}

ncclResult_t kl_crossing_synchronize(const struct kl_crossing *x)
{
    return kl_gpu_gate_synchronize(x->gate);
}

/* ---- a call ---- */

/* An operation in one round has the plan that was chosen for its call. */
static ncclResult_t choose(ncclComm_t comm, struct kl_gpu_travel *v)
{
    const struct kl_task *asked = v->op->task;

    if (kl_func_is_message(asked->func) || v->task.count == asked->count) return ncclSuccess;
    return kl_exec_choose(comm->exec, &v->task);
}

static ncclResult_t make_notices(const struct kl_crossing *x, struct kl_gpu_rounds *rounds,
                                 const struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = x->gate->context;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = kl_gpu_notices_make(x->gate, rounds, call);
    kl_cuda_leave(c);
    return rc;
}

/* ---- messages that NICs move themselves ---- */

static const struct kl_net_reach *reach_of(ncclComm_t comm, struct kl_crossing *x, const struct kl_task *t)
{
    const bool sends = t->func == KL_FUNC_SEND;
    struct way *w = &x->way[2 * t->peer + sends];

    if (!w->known) kl_comm_find_reach(comm, t->peer, sends, &w->reach);
    w->known = true;
    return &w->reach;
}

/* Asking takes long, and the answer for an allocation stays: another one at its place has another number. */
static bool is_reached(struct kl_crossing *x, const struct kl_net_reach *reach, const void *data, size_t bytes)
{
    struct kl_cuda_region region;

    if (!kl_cuda_region_find(reach->device, data, bytes, &region)) return false;
    struct allocation *a = &x->allocation[region.id % KNOWN];
    if (a->id == region.id && a->memory == reach->memory) return a->has;
    const bool has = kl_net_reach_has(reach, &region);
    *a = (struct allocation){.id = region.id, .memory = reach->memory, .has = has};
    return has;
}

static bool goes_by_nic(ncclComm_t comm, struct kl_crossing *x, const struct kl_task *t)
{
    const size_t bytes = t->count * kl_type_bytes(t->type);

    if (t->peer == comm->rank || bytes < x->nic_from) return false;
    const struct kl_net_reach *reach = reach_of(comm, x, t);
    return reach->memory && is_reached(x, reach, t->func == KL_FUNC_SEND ? t->send : t->recv, bytes);
}

static void find_nics(ncclComm_t comm, struct kl_crossing *x, struct kl_gpu_call *call)
{
    const bool may = !call->capture && !x->serves;

    for (size_t i = call->ncollectives; i < call->nops; i++)
        call->op[i].by_nic = may && goes_by_nic(comm, x, call->op[i].task);
}

ncclResult_t kl_crossing_prepare(ncclComm_t comm, struct kl_crossing *x, struct kl_gpu_call *call)
{
    struct kl_gpu_rounds *rounds = &x->rounds;
    char *stage;

    KL_TRY(kl_gpu_hosts_check(x->hosts, call));
    find_nics(comm, x, call);
    KL_TRY(kl_gpu_rounds_cut(rounds, call, comm->nranks, x->limit));
    KL_TRY(kl_gpu_gate_reserve(x->gate, rounds->stage_bytes, call->capture, &stage));
    kl_gpu_rounds_place(rounds, stage);
    for (size_t i = 0; i < rounds->ntravels; i++) KL_TRY(choose(comm, &rounds->travel[i]));
    if (x->serves || call->capture) return make_notices(x, rounds, call);
    return kl_comm_make_room(comm, rounds->ntravels);
}

/* In the flight record: over the stage, or not. */
static void note_way(ncclComm_t comm, uint64_t number, const struct kl_task *t)
{
    if (kl_func_is_message(t->func))
        kl_flight_way(comm->flight, number,
                      kl_select_way(t->choice.of_gpu ? KL_COPY_DIRECT : KL_COPY_STAGED, false, false));
}

static void record(ncclComm_t comm, const struct kl_task *task, const void *stream, uint64_t now)
{
    const uint64_t number = kl_load_relaxed(&comm->tasks_taken);
    struct kl_task *t = kl_comm_task(comm, number);

    *t = *task;
    t->timeout_ns = comm->timeout_ns;
    if (comm->profile) kl_comm_profile_note(comm, number, (struct kl_profile_call){0});
    if (!kl_func_is_message(t->func)) kl_comm_record_collective(comm, t);
    kl_flight_issue(comm->flight, number, t, stream, now);
    note_way(comm, number, t);
    kl_store_release(&comm->tasks_taken, number + 1); /* pairs with kl_rma_receive */
}

/* ---- the engine's stream ---- */

static struct kl_gpu_gate *gate_of(const struct kl_work *work)
{
    return (struct kl_gpu_gate *)(uintptr_t)work->arg[GATE];
}

static enum kl_progress await_data(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;

    (void)stream;
    if (kl_load_acquire(&comm->failed)) return KL_DONE; /* pairs with kl_comm_fail */
    if (kl_gpu_gate_has_arrived(gate_of(work), work->arg[NUMBER])) return KL_DONE;
    if (++work->arg[POLLS] % POLLS_PER_CHECK) return KL_STALLED;
    const ncclResult_t rc = kl_gpu_gate_check(gate_of(work));
    if (rc) kl_comm_fail(comm, comm->rank, rc, kl_error_text(), true);
    return KL_STALLED;
}

static enum kl_progress tell_gpu(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;

    (void)stream;
    if (!kl_load_acquire(&comm->failed)) kl_gpu_gate_tell(gate_of(work), work->arg[NUMBER]);
    if (work->arg[HELD]) kl_gpu_gate_unhold(gate_of(work));
    return KL_DONE;
}

static void push(ncclComm_t comm, struct kl_crossing *x, const struct kl_gpu_round *round,
                 enum kl_progress (*progress)(struct kl_stream *stream, struct kl_work *work), bool held)
{
    const struct kl_work work = {
        .progress = progress,
        .owner = comm,
        .arg = {[GATE] = (uint64_t)(uintptr_t)x->gate, [NUMBER] = round->number, [HELD] = held},
    };

    comm->last_ticket = x->queued = kl_stream_push(x->engine, &work) + 1;
}

static void launch(ncclComm_t comm, const struct kl_crossing *x, const struct kl_gpu_round *round)
{
    const struct kl_work work = {
        .progress = kl_comm_run_launch,
        .owner = comm,
        .arg = {[KL_ARG_LAUNCH] = comm->launched++,
                [KL_ARG_FIRST] = kl_load_relaxed(&comm->tasks_taken) - round->ntravels,
                [KL_ARG_COUNTS] = round->ntravels},
    };

    kl_stream_push(x->engine, &work);
}

static void queue(ncclComm_t comm, struct kl_crossing *x, const struct kl_gpu_round *round, uint64_t now)
{
    for (size_t i = 0; i < round->ntravels; i++) {
        const struct kl_gpu_travel *v = &x->rounds.travel[round->travel + i];
        record(comm, &v->task, v->op->stream, now);
    }
    if (round->by_nic) kl_gpu_gate_hold(x->gate);
    push(comm, x, round, await_data, false);
    launch(comm, x, round);
    push(comm, x, round, tell_gpu, round->by_nic);
}

/* ---- notices ---- */

static struct kl_crossing *crossing_of(const struct kl_work *work)
{
    return (struct kl_crossing *)(uintptr_t)work->arg[0];
}

/* Nothing is in flight: the ring may grow. */
static ncclResult_t begin_notice(ncclComm_t comm, struct kl_crossing *x, const struct kl_gpu_notice *notice)
{
    const uint64_t now = kl_ticks();

    KL_TRY(kl_comm_reserve(comm, notice->ntasks));
    for (size_t i = 0; i < notice->ntasks; i++) record(comm, &notice->task[i], notice->stream, now);
    x->launch = (struct kl_work){
        .progress = kl_comm_run_launch,
        .owner = comm,
        .arg = {[KL_ARG_LAUNCH] = comm->launched++,
                [KL_ARG_FIRST] = kl_load_relaxed(&comm->tasks_taken) - notice->ntasks,
                [KL_ARG_COUNTS] = notice->ntasks},
    };
    return ncclSuccess;
}

/* STALLED: there is none. */
static enum kl_progress next_notice(ncclComm_t comm, struct kl_crossing *x)
{
    ncclResult_t rc = ncclSuccess;

    x->current = kl_gpu_notices_take(&x->gate->notices);
    if (x->current)
        rc = begin_notice(comm, x, x->current);
    else if (!(++x->polls % POLLS_PER_CHECK))
        rc = kl_gpu_gate_check(x->gate);
    if (rc) {
        kl_comm_fail(comm, comm->rank, rc, kl_error_text(), true);
        return KL_DONE;
    }
    if (!x->current && kl_idle_arming()) kl_idle_registered();
    return x->current ? KL_MOVED : KL_STALLED;
}

/* Until the communicator ends: its notices, one after the other. */
static enum kl_progress serve(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    struct kl_crossing *x = crossing_of(work);

    if (!x->current) {
        if (kl_load_acquire(&comm->failed) || kl_load_acquire(&x->ends))
            return KL_DONE; /* pair with kl_comm_fail, end_serving */
        return next_notice(comm, x);
    }
    const enum kl_progress got = kl_comm_run_launch(stream, &x->launch);
    if (got != KL_DONE) return got;
    const uint64_t number = kl_load_acquire(&comm->failed) ? 0 : kl_gpu_notice_answer(x->current);
    if (number) kl_gpu_gate_tell(x->gate, number);
    x->current = NULL;
    return KL_MOVED;
}

/* Calls before this one are recorded already, on all ranks. */
static void begin_serving(ncclComm_t comm, struct kl_crossing *x)
{
    const struct kl_work work = {.progress = serve, .owner = comm, .arg = {(uint64_t)(uintptr_t)x}};

    if (x->serves) return;
    x->serves = true;
    x->served = kl_stream_push(x->engine, &work);
}

bool kl_crossing_records_late(const struct kl_crossing *x)
{
    return x->serves;
}

static void queue_all(ncclComm_t comm, struct kl_crossing *x)
{
    const uint64_t now = kl_ticks();

    for (size_t i = 0; i < x->rounds.nrounds; i++) queue(comm, x, &x->rounds.round[i], now);
}

ncclResult_t kl_crossing_begin(ncclComm_t comm, struct kl_crossing *x, const struct kl_gpu_call *call)
{
    if (!call->capture) kl_gpu_hosts_number(x->hosts, comm->rank, &x->rounds);
    kl_store_relaxed(&x->engine->cores, comm->cores);
    comm->last_stream = x->engine;
    if (call->capture) begin_serving(comm, x);
    if (!x->serves) queue_all(comm, x);
    kl_userops_note_launches(comm);
    return kl_gpu_gate_begin(x->gate, call);
}

void kl_crossing_arrive(struct kl_crossing *x, const struct kl_gpu_call *call, bool messages)
{
    kl_gpu_hosts_arrive(x->hosts, call->rank, &x->rounds, call->capture, messages);
}

ncclResult_t kl_crossing_wait(ncclComm_t comm, struct kl_crossing *x, const struct kl_gpu_limits *limits)
{
    return kl_gpu_hosts_wait(x->hosts, comm->rank, &comm->failed, limits);
}

ncclResult_t kl_crossing_end(struct kl_crossing *x, const struct kl_gpu_call *call)
{
    return kl_gpu_gate_end(x->gate, call);
}
