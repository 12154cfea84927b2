/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/gpus.h"

#include "base/clock.h"
#include "base/log.h"
#include "channel/arena.h"
#include "coll/gpu/far.h"
#include "coll/gpu/stage.h"
#include "coll/gpu/team.h"
#include "coll/select/select.h"
#include "comm/diagnosis/trace.h"
#include "comm/queue/crossing.h"
#include "comm/queue/record.h"
#include "comm/together.h"
#include "device/host/wait.h"
#include "topo/paths.h"
#include "transport/tags.h"

#include <stdlib.h>
#include <string.h>

struct kl_comm_gpus {
    struct kl_gpu_team *team;
    struct kl_crossing *crossing; /* in place of a team, where ranks are on several hosts */
    struct kl_gpu_op *op;         /* of the call in progress */
    size_t room;
    struct kl_gpu_call call;
    struct kl_records *uuids; /* of all ranks' GPUs, during init */
};

/* ---- life ---- */

/* While a failure releases a team, it stays. */
static pthread_mutex_t release_lock = PTHREAD_MUTEX_INITIALIZER;

/* Arenas of failed communicators. */
static struct {
    pthread_mutex_t lock;
    struct kl_arena *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Wait until all processes have mapped the memory that the first of them makes. */
static ncclResult_t await_arena(ncclComm_t comm, struct kl_arena *arena)
{
    const uint64_t deadline = kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000);
    struct kl_poll_wait wait = KL_WAIT_START;
    ncclResult_t rc = ncclSuccess;

    while (kl_arena_progress(arena, &rc) != KL_DONE && !arena->ready) {
        KL_TRY(kl_comm_failure(comm));
        if (kl_deadline_passed(deadline))
            return KL_FAIL(ncclRemoteError, "rank %d has waited KOLO_BOOTSTRAP_TIMEOUT for memory that processes share",
                           comm->rank);
        kl_wait_pause(&wait, KL_CORES_SHARED);
    }
    return rc;
}

/* Common memory of the processes, by their leaders. */
static ncclResult_t share_memory(ncclComm_t comm, uint32_t tag, size_t bytes, struct kl_arena **made)
{
    const struct kl_subgroup leaders = kl_process_shared_leaders(comm, NULL, comm->shared->gpus_leaders);
    const struct kl_arena_config config = {
        .bootstrap = comm->bootstrap,
        .ranks = leaders.rank,
        .n = leaders.n,
        .own = leaders.own,
        .tag = tag,
        .bytes = bytes,
        .timeout_ms = (uint64_t)comm->config.bootstrap_timeout_s * 1000,
    };

    struct kl_arena *arena = *made = calloc(1, sizeof *arena);
    if (!arena) return KL_NOMEM("memory that processes share");
    KL_TRY(kl_arena_begin(arena, &config));
    return await_arena(comm, arena);
}

static ncclResult_t get_arena(ncclComm_t comm)
{
    struct kl_process_shared *shared = comm->shared;

    if (shared->rank_map.nprocesses == 1) return ncclSuccess;
    if (comm->nranks > KL_JOB_RANKS) return ncclSuccess; /* refused below */
    shared->gpus_leaders = calloc((size_t)shared->rank_map.nprocesses, sizeof(int32_t));
    if (!shared->gpus_leaders) return KL_NOMEM("memory that processes share");
    return share_memory(comm, KL_TAG_GPUS, kl_gpu_team_bytes(comm->nranks), &shared->gpus_arena);
}

/* For GPUs without P2P, or GPUs that meet at flags. */
static ncclResult_t share_more(void *ctx, size_t bytes, void **memory)
{
    ncclComm_t comm = ctx;

    KL_TRY(share_memory(comm, KL_TAG_GPUS_RELAY, bytes, &comm->shared->gpus_relay_arena));
    *memory = comm->shared->gpus_relay_arena->memory;
    return ncclSuccess;
}

/* Streams of a failed communicator may still wait for words of its arena: it stays mapped until the process ends. */
static void drop_arena(struct kl_arena **dropped, bool in_use)
{
    struct kl_arena *arena = *dropped;

    if (arena && in_use) {
        pthread_mutex_lock(&kept.lock);
        arena->next = kept.first;
        kept.first = arena;
        pthread_mutex_unlock(&kept.lock);
    } else if (arena) {
        kl_arena_fini(arena);
        free(arena);
    }
    *dropped = NULL;
}

static void drop_arenas(struct kl_process_shared *shared, bool in_use)
{
    drop_arena(&shared->gpus_arena, in_use);
    drop_arena(&shared->gpus_relay_arena, in_use);
    free(shared->gpus_leaders);
    shared->gpus_leaders = NULL;
}

/* Do NCCL_P2P_DISABLE or NCCL_P2P_LEVEL forbid it between some GPUs? Without them the limits would be an
 * emulated machine's. */
static ncclResult_t find_forbidden(ncclComm_t comm, bool *forbidden)
{
    char why[KL_WHY_TEXT];
    struct kl_p2p p2p;

    for (int pair = 0; pair < comm->nranks * comm->nranks && !*forbidden; pair++) {
        const int a = pair / comm->nranks, b = pair % comm->nranks;
        if (a == b) continue;
        KL_TRY(kl_topo_p2p(comm->topo, a, b, &p2p));
        *forbidden = p2p.why == KL_P2P_DISABLED || (p2p.why == KL_P2P_TOO_FAR && p2p.limit == KL_P2P_LIMIT_SET);
        if (*forbidden)
            KL_INFO(KL_INIT | KL_P2P, "the GPUs of ranks %d and %d, and all others, use no P2P: %s", a, b,
                    kl_p2p_why_text(&p2p, why));
    }
    return ncclSuccess;
}

static ncclResult_t try_team(ncclComm_t comm, const struct kl_gpu_place *place)
{
    struct kl_process_shared *shared = comm->shared;
    struct kl_device_config config;
    struct kl_gpu_setup setup = {.nprocesses = shared->rank_map.nprocesses,
                                 .own = shared->process,
                                 .share = share_more,
                                 .ctx = comm,
                                 .config = &config,
                                 .graph = comm->connect,
                                 .chunk_bytes = kl_connections_step_bytes(comm->connections)};

    kl_param_load(&kl_device_param_set, &config);
    KL_TRY(get_arena(comm));
    KL_TRY(find_forbidden(comm, &setup.no_p2p));
    setup.common = shared->gpus_arena ? shared->gpus_arena->memory : NULL;
    KL_TRY(kl_gpu_team_create(place, comm->nranks, &setup, &shared->team));
    comm->gpus->team = shared->team;
    return ncclSuccess;
}

static ncclResult_t create_team(ncclComm_t comm, const struct kl_gpu_place *place)
{
    const ncclResult_t rc = try_team(comm, place);

    if (rc) drop_arenas(comm->shared, false); /* no stream has used them */
    return rc;
}

static void place_of(const struct ncclComm *comm, int rank, const unsigned char *uuid, struct kl_gpu_place *to)
{
    const int process = comm->shared->rank_map.process[rank];

    to->process = process;
    to->device = process == comm->shared->process ? comm->peers[rank].device : -1;
    memcpy(to->uuid, uuid, KL_GPU_UUID);
}

/* The leader makes it, with the places of all ranks. */
static ncclResult_t lead(ncclComm_t comm)
{
    const unsigned char *uuid = comm->gpus->uuids->all;
    struct kl_gpu_place *place = calloc((size_t)comm->nranks, sizeof *place);

    if (!place) return KL_NOMEM("the devices of all ranks");
    for (int r = 0; r < comm->nranks; r++) place_of(comm, r, uuid + (size_t)r * KL_GPU_UUID, &place[r]);
    ncclResult_t rc = kl_crossing_is_needed(comm) ? kl_crossing_lead(comm, place) : create_team(comm, place);
    free(place);
    return rc;
}

static ncclResult_t join_team(ncclComm_t comm)
{
    struct kl_comm_gpus *g = comm->gpus;
    unsigned char uuid[KL_GPU_UUID];

    KL_TRY(kl_gpu_identify(comm->device, uuid));
    KL_TRY(kl_bootstrap_gather(comm->bootstrap, uuid, sizeof uuid, &g->uuids));
    ncclResult_t rc = kl_process_shared_stage(comm, KL_PROCESS_SHARED_GPUS, lead);
    kl_records_unref(g->uuids);
    comm->gpus_use_engine = comm->shared->gpu_hosts;
    if (!rc && comm->gpus_use_engine) return kl_crossing_create(comm, &g->crossing);
    if (!rc && !g->team) {
        g->team = comm->shared->team;
        kl_gpu_team_ref(g->team);
    }
    return rc;
}

/* The communicator has failed: its streams do not wait for other processes for ever. Any thread. */
static void release(ncclComm_t comm)
{
    pthread_mutex_lock(&release_lock);
    if (comm->gpus && comm->gpus->team) kl_gpu_team_release(comm->gpus->team, kl_comm_failure_text(comm));
    if (comm->gpus && comm->gpus->crossing) kl_crossing_release(comm->gpus->crossing);
    pthread_mutex_unlock(&release_lock);
}

/* Nothing runs its work any more, and no NIC uses the program's memory. */
static void settle(ncclComm_t comm)
{
    if (comm->gpus && comm->gpus->crossing) kl_crossing_settle(comm->gpus->crossing);
}

ncclResult_t kl_comm_join_gpus(ncclComm_t comm)
{
    if (comm->devices == &kl_host_devices) return ncclSuccess;
    struct kl_comm_gpus *g = calloc(1, sizeof *g);
    if (!g) return KL_NOMEM("a communicator on GPUs");
    comm->gpus = g;
    kl_store_release(&comm->end_waits, release); /* pairs with kl_comm_fail */
    comm->settle_waits = settle;
    KL_TRY(kl_comm_fail_together(comm, join_team(comm)));
    if (g->team) kl_gpu_team_note_caller(g->team, comm->rank, comm->creator);
    if (g->team && kl_gpu_team_has_schedules(g->team)) kl_exec_use_rows(comm->exec, kl_gpu_team_has_ll128(g->team));
    return ncclSuccess;
}

void kl_comm_leave_gpus(ncclComm_t comm)
{
    struct kl_comm_gpus *g = comm->gpus;
    const bool failed = kl_load_acquire(&comm->failed);
    bool any_failed = failed;

    if (!g) return;
    pthread_mutex_lock(&release_lock);
    comm->gpus = NULL;
    pthread_mutex_unlock(&release_lock);
    pthread_mutex_lock(&comm->shared->lock);
    if (g->team && kl_gpu_team_leave(g->team, &any_failed, kl_comm_failure_text(comm))) {
        comm->shared->team = NULL;
        drop_arenas(comm->shared, any_failed);
    }
    pthread_mutex_unlock(&comm->shared->lock);
    kl_crossing_free(comm, g->crossing, failed);
    free(g->op);
    free(g);
}

ncclResult_t kl_comm_synchronize_gpus(ncclComm_t comm)
{
    if (!comm->gpus || kl_load_acquire(&comm->failed)) return ncclSuccess;
    if (comm->gpus->crossing) return kl_crossing_synchronize(comm->gpus->crossing);
    return kl_gpu_team_synchronize(comm->gpus->team);
}

/* ---- a call ---- */

static ncclResult_t reserve(ncclComm_t comm)
{
    struct kl_comm_gpus *g = comm->gpus;

    KL_TRY(kl_comm_make_room(comm, comm->nqueued));
    if (comm->nqueued <= g->room) return ncclSuccess;
    struct kl_gpu_op *grown = realloc(g->op, comm->queued_room * sizeof *grown);
    if (!grown) return KL_NOMEM("the operations of a group");
    g->op = grown;
    g->room = comm->queued_room;
    return ncclSuccess;
}

static void add_ops(ncclComm_t comm, bool messages)
{
    struct kl_gpu_call *call = &comm->gpus->call;

    for (size_t i = 0; i < comm->nqueued; i++) {
        const struct kl_queued *q = &comm->queued[i];
        if (kl_func_is_message(q->task.func) == messages)
            call->op[call->nops++] = (struct kl_gpu_op){.task = &q->task, .stream = q->handle};
    }
}

/* Its queued operations, collectives first; nothing has changed for other ranks. */
static ncclResult_t prepare(ncclComm_t comm)
{
    struct kl_gpu_call *call = &comm->gpus->call;

    KL_TRY(reserve(comm));
    *call = (struct kl_gpu_call){.rank = comm->rank, .op = comm->gpus->op};
    add_ops(comm, false);
    call->ncollectives = call->nops;
    add_ops(comm, true);
    if (comm->gpus->crossing) return kl_crossing_prepare(comm, comm->gpus->crossing, call);
    return kl_gpu_check(comm->gpus->team, call);
}

/* From buffer to buffer, or over other memory: stages that other processes can map, host memory. */
static uint8_t way_of(const struct kl_gpu_op *op, bool staged)
{
    return kl_select_way(staged || kl_gpu_stage_exists(op) ? KL_COPY_STAGED : KL_COPY_DIRECT, false, false);
}

/* From their call on; a trace shows those in progress by the time in the flight record. */
static void begin_trace(ncclComm_t comm, uint64_t first, uint64_t now)
{
    comm->begun_at = now;
    kl_flight_time_begin(comm->flight, first, kl_load_relaxed(&comm->tasks_taken));
}

/* Until they were on the GPUs. No engine runs them: the ring of its events is the caller's. */
static void trace_ops(ncclComm_t comm)
{
    const struct kl_gpu_call *call = &comm->gpus->call;
    const uint64_t first = kl_load_relaxed(&comm->tasks_taken) - call->nops, now = kl_ticks();

    for (size_t i = 0; i < call->nops; i++) {
        const struct kl_task *t = call->op[i].task;
        struct kl_trace_event e = kl_trace_task(KL_TRACE_OP, t);
        e.number = first + i + 1;
        e.collective = kl_func_is_message(t->func) ? 0 : (uint32_t)t->number;
        e.way = way_of(&call->op[i], comm->gpus->team->relay);
        e.begin = comm->begun_at;
        e.end = now;
        kl_trace_add(comm->trace, KL_TRACE_RUNNER, &e);
    }
}

/* In the flight record, and as collectives with their numbers. */
static void record(ncclComm_t comm)
{
    const struct kl_gpu_call *call = &comm->gpus->call;
    const uint64_t now = kl_ticks(), first = kl_load_relaxed(&comm->tasks_taken);

    for (size_t i = 0; i < call->nops; i++) {
        const uint64_t number = kl_load_relaxed(&comm->tasks_taken);
        struct kl_task *t = kl_comm_task(comm, number);
        *t = *call->op[i].task;
        t->timeout_ns = comm->timeout_ns;
        if (!kl_func_is_message(t->func)) kl_comm_record_collective(comm, t);
        kl_flight_issue(comm->flight, number, t, call->op[i].stream, now);
        kl_flight_way(comm->flight, number, way_of(&call->op[i], comm->gpus->team->relay));
        kl_store_release(&comm->tasks_taken, number + 1); /* pairs with kl_desync_check_answer */
        call->op[i].task = t;
    }
    comm->begun = kl_flight_begin(comm->flight, kl_load_relaxed(&comm->tasks_taken));
    if (comm->trace) begin_trace(comm, first, now);
}

/* The tasks are on the GPUs. */
static void finish(ncclComm_t comm)
{
    const uint64_t end = kl_load_relaxed(&comm->tasks_taken);

    kl_flight_end(comm->flight, end, kl_load_relaxed(&comm->collectives));
    comm->cursor = end;
    kl_store_release(&comm->tasks_done, end); /* pairs with kl_comm_wait_for_flight */
}

static ncclResult_t fail(ncclComm_t comm, ncclResult_t rc)
{
    if (rc && !kl_load_acquire(&comm->failed)) kl_comm_fail(comm, comm->rank, rc, kl_error_text(), true);
    return rc ? kl_comm_failure(comm) : ncclSuccess;
}

static ncclResult_t begin(ncclComm_t comm)
{
    struct kl_crossing *crossing = comm->gpus->crossing;

    if (crossing) return fail(comm, kl_crossing_begin(comm, crossing, &comm->gpus->call));
    record(comm);
    return fail(comm, kl_gpu_begin(comm->gpus->team, &comm->gpus->call));
}

static ncclResult_t wait_for_others(ncclComm_t comm)
{
    const struct kl_gpu_limits limits = {
        .deadline = comm->timeout_ns ? kl_now_ns() + comm->timeout_ns : KL_NO_DEADLINE,
        .alone = kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000),
    };

    if (kl_load_acquire(&comm->failed)) return kl_comm_failure(comm);
    if (comm->gpus->crossing) return fail(comm, kl_crossing_wait(comm, comm->gpus->crossing, &limits));
    return fail(comm, kl_gpu_wait(comm->gpus->team, &comm->gpus->call, &comm->failed, &limits));
}

/* Also after a failure: operations that are on the GPUs already use the program's memory until they end. */
static ncclResult_t end(ncclComm_t comm)
{
    struct kl_crossing *crossing = comm->gpus->crossing;
    ncclResult_t rc =
        crossing ? kl_crossing_end(crossing, &comm->gpus->call) : kl_gpu_end(comm->gpus->team, &comm->gpus->call);

    rc = kl_load_acquire(&comm->failed) ? kl_comm_failure(comm) : fail(comm, rc);
    if (crossing) return rc; /* the engine does the rest */
    if (comm->trace && !rc) trace_ops(comm);
    finish(comm);
    return rc;
}

static void arrive(ncclComm_t comm, bool messages)
{
    struct kl_crossing *crossing = comm->gpus->crossing;

    if (kl_load_acquire(&comm->failed)) return;
    if (crossing)
        kl_crossing_arrive(crossing, &comm->gpus->call, messages);
    else
        kl_gpu_arrive(comm->gpus->team, &comm->gpus->call, messages);
}

/* ---- several ---- */

static void keep_first(ncclResult_t *first, ncclResult_t rc)
{
    if (!*first) *first = rc;
}

/* All ranks of the thread come before any waits. */
static void meet(ncclComm_t comms, bool messages, ncclResult_t *rc)
{
    for (ncclComm_t c = comms; c; c = c->group_next) arrive(c, messages);
    for (ncclComm_t c = comms; c; c = c->group_next) keep_first(rc, wait_for_others(c));
}

ncclResult_t kl_comm_run_on_gpus(ncclComm_t comms)
{
    ncclResult_t rc = ncclSuccess;

    for (ncclComm_t c = comms; c; c = c->group_next) KL_TRY(prepare(c));
    for (ncclComm_t c = comms; c; c = c->group_next) keep_first(&rc, begin(c));
    meet(comms, false, &rc);
    meet(comms, true, &rc);
    for (ncclComm_t c = comms; c; c = c->group_next) keep_first(&rc, end(c));
    return rc;
}

ncclResult_t kl_comm_issue_empty_on_gpus(ncclComm_t comm, struct kl_task *task)
{
    if (comm->gpus->crossing && kl_crossing_records_late(comm->gpus->crossing)) return ncclSuccess;
    return kl_comm_record_empty(comm, task);
}

/* Does it need algorithm, protocol and channels? */
static bool is_planned(ncclComm_t comm, const struct kl_task *t)
{
    const struct kl_comm_gpus *g = comm->gpus;

    if (!t->count || kl_func_is_message(t->func)) return false;
    return g->crossing || (t->func < KL_FUNCS && kl_gpu_team_has_schedules(g->team));
}

static ncclResult_t issue(ncclComm_t comm, cudaStream_t stream)
{
    struct kl_queued *q = &comm->queued[comm->nqueued];

    if (is_planned(comm, &q->task)) KL_TRY(kl_exec_choose(comm->exec, &q->task));
    comm->nqueued++;
    q->handle = stream;
    comm->queued_to_self |= kl_func_is_message(q->task.func) && q->task.peer == comm->rank;
    if (kl_load_relaxed(&comm->in_group)) return ncclSuccess;
    comm->group_next = NULL; /* it is in no list */
    ncclResult_t rc = kl_comm_run_on_gpus(comm);
    kl_comm_drop_queued(comm);
    return rc;
}

static __attribute__((noinline)) ncclResult_t issue_traced(ncclComm_t comm, cudaStream_t stream)
{
    const uint64_t begin = kl_ticks(), before = kl_load_relaxed(&comm->tasks_taken);
    struct kl_trace_event e = kl_trace_task(KL_TRACE_CALL, &comm->queued[comm->nqueued].task);
    ncclResult_t rc = issue(comm, stream);

    e.number = kl_load_relaxed(&comm->tasks_taken) == before ? 0 : before + 1;
    e.begin = begin;
    e.end = kl_ticks();
    if (!rc) kl_trace_add(comm->trace, KL_TRACE_CALLER, &e);
    return rc;
}

ncclResult_t kl_comm_issue_on_gpus(ncclComm_t comm, cudaStream_t stream)
{
    return comm->trace ? issue_traced(comm, stream) : issue(comm, stream);
}
