/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/gpus.h"

#include "base/clock.h"
#include "coll/gpu/team.h"
#include "comm/queue/record.h"

#include <stdlib.h>

struct kl_comm_gpus {
    struct kl_gpu_team *team;
    struct kl_gpu_op *op; /* of the call in progress */
    size_t room;
    struct kl_gpu_call call;
};

/* ---- life ---- */

static ncclResult_t create_team(ncclComm_t comm, struct kl_gpu_team **team)
{
    struct kl_device_config config;
    int *device_of = calloc((size_t)comm->nranks, sizeof *device_of);

    if (!device_of) return KL_NOMEM("the devices of all ranks");
    for (int r = 0; r < comm->nranks; r++) device_of[r] = comm->peers[r].device;
    kl_param_load(&kl_device_param_set, &config);
    ncclResult_t rc = kl_gpu_team_create(device_of, comm->nranks, &config, team);
    free(device_of);
    return rc;
}

/* The first rank makes it. Under the shared state's lock. */
static ncclResult_t join_team(ncclComm_t comm, struct kl_gpu_team **team)
{
    struct kl_process_shared *shared = comm->shared;

    *team = shared->team;
    if (!*team) {
        KL_TRY(create_team(comm, team));
        shared->team = *team;
    } else {
        kl_gpu_team_hold(*team);
    }
    return ncclSuccess;
}

ncclResult_t kl_comm_join_gpus(ncclComm_t comm)
{
    if (comm->devices == &kl_host_devices) return ncclSuccess;
    struct kl_comm_gpus *g = calloc(1, sizeof *g);
    if (!g) return KL_NOMEM("a communicator on GPUs");
    comm->gpus = g;
    pthread_mutex_lock(&comm->shared->lock);
    ncclResult_t rc = join_team(comm, &g->team);
    pthread_mutex_unlock(&comm->shared->lock);
    if (!rc) kl_gpu_team_note_caller(g->team, comm->rank, comm->creator);
    return rc;
}

void kl_comm_leave_gpus(ncclComm_t comm)
{
    struct kl_comm_gpus *g = comm->gpus;

    if (!g) return;
    comm->gpus = NULL;
    pthread_mutex_lock(&comm->shared->lock);
    if (g->team && kl_gpu_team_leave(g->team, (ncclResult_t)kl_load_acquire(&comm->failed))) comm->shared->team = NULL;
    pthread_mutex_unlock(&comm->shared->lock);
    free(g->op);
    free(g);
}

ncclResult_t kl_comm_synchronize_gpus(ncclComm_t comm)
{
    if (!comm->gpus || kl_load_acquire(&comm->failed)) return ncclSuccess;
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
    return kl_gpu_check(comm->gpus->team, call);
}

/* In the flight record, and as collectives with their numbers. */
static void record(ncclComm_t comm)
{
    const struct kl_gpu_call *call = &comm->gpus->call;
    const uint64_t now = kl_ticks();

    for (size_t i = 0; i < call->nops; i++) {
        const uint64_t number = kl_load_relaxed(&comm->tasks_taken);
        struct kl_task *t = kl_comm_task(comm, number);
        *t = *call->op[i].task;
        t->timeout_ns = comm->timeout_ns;
        if (!kl_func_is_message(t->func)) kl_comm_record_collective(comm, t);
        kl_flight_issue(comm->flight, number, t, call->op[i].stream, now);
        kl_store_release(&comm->tasks_taken, number + 1); /* pairs with kl_desync_check_answer */
        call->op[i].task = t;
    }
    comm->begun = kl_flight_begin(comm->flight, kl_load_relaxed(&comm->tasks_taken));
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
    return fail(comm, kl_gpu_wait(comm->gpus->team, &comm->gpus->call, &comm->failed, &limits));
}

static ncclResult_t end(ncclComm_t comm)
{
    ncclResult_t rc = kl_load_acquire(&comm->failed) ? kl_comm_failure(comm)
                                                     : fail(comm, kl_gpu_end(comm->gpus->team, &comm->gpus->call));

    finish(comm);
    return rc;
}

static void arrive(ncclComm_t comm, bool messages)
{
    if (!kl_load_acquire(&comm->failed)) kl_gpu_arrive(comm->gpus->team, &comm->gpus->call, messages);
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

ncclResult_t kl_comm_issue_on_gpus(ncclComm_t comm, cudaStream_t stream)
{
    struct kl_queued *q = &comm->queued[comm->nqueued++];

    q->handle = stream;
    comm->queued_to_self |= kl_func_is_message(q->task.func) && q->task.peer == comm->rank;
    if (kl_load_relaxed(&comm->in_group)) return ncclSuccess;
    comm->group_next = NULL; /* it is in no list */
    ncclResult_t rc = kl_comm_run_on_gpus(comm);
    kl_comm_drop_queued(comm);
    return rc;
}
