/* SPDX-License-Identifier: Apache-2.0 */
/**
 * init.c - the life of a communicator: a table of phases, run forwards at creation and undone backwards at the end.
 */
#include "comm/diagnosis/dump.h"
#include "comm/job.h"
#include "comm/diagnosis/control_msg.h"
#include "comm/diagnosis/flight_file.h"
#include "comm/diagnosis/gather.h"
#include "comm/diagnosis/ras.h"
#include "comm/diagnosis/trace_file.h"
#include "comm/queue/gpus.h"

#include "base/clock.h"
#include "base/env_plugin.h"
#include "base/log.h"
#include "device/host/wait.h"
#include "os/process.h"
#include "os/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- phases ---- */

static void on_failure(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    kl_comm_fail(ctx, culprit, code, text, false);
}

static void on_control_msg(void *ctx, struct kl_bootstrap *bootstrap, int from, const void *data, size_t bytes)
{
    ncclComm_t comm = ctx;
    const unsigned char *what = data;

    if (!bytes) return;
    if (*what == KL_CONTROL_MSG_CLOCK_ASK || *what == KL_CONTROL_MSG_CLOCK_ANSWER)
        kl_clock_on_message(&comm->clock, bootstrap, from, data, bytes);
    else if (*what == KL_CONTROL_MSG_STATUS_ASK || *what == KL_CONTROL_MSG_STATUS_ANSWER)
        kl_gather_on_message(comm, bootstrap, from, data, bytes);
}

static void on_life(void *ctx, struct kl_bootstrap *bootstrap)
{
    kl_comm_set_abort_target(ctx, bootstrap);
}

static ncclResult_t join_bootstrap(ncclComm_t comm)
{
    const struct kl_comm_params *params = comm->params;
    struct kl_bootstrap_config config = {
        .rank = comm->rank,
        .nranks = comm->nranks,
        .timeout_ms = (uint64_t)comm->config.bootstrap_timeout_s * 1000,
        .on_failure = on_failure,
        .on_control_msg = on_control_msg,
        .on_packet = kl_comm_on_packet,
        .on_left = kl_comm_on_left,
        .on_life = on_life,
        .ctx = comm,
    };

    if (params->ids) return kl_bootstrap_join_many(&config, params->ids, params->nids, &comm->bootstrap);
    return kl_bootstrap_derive(&config, params->parent->bootstrap, params->member, &params->salt, &comm->bootstrap);
}

static void leave_bootstrap(ncclComm_t comm)
{
    kl_comm_set_abort_target(comm, NULL);
    kl_bootstrap_leave(comm->bootstrap);
    comm->bootstrap = NULL;
}

static ncclResult_t fill_redops(ncclComm_t comm)
{
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            KL_TRY(kl_redop_init(&comm->redops[type][op], (ncclDataType_t)type, (ncclRedOp_t)op, comm->nranks));
    return ncclSuccess;
}

/* The range of memory that all can map. The first rank of each node, and the first of all, stand for the others. */
static enum kl_peer_connect reach_of_memory(ncclComm_t comm)
{
    const struct kl_nodes *nodes = &comm->connect->nodes;
    enum kl_peer_connect reach = comm->one_memory ? KL_REACH_ALL : KL_REACH_NODE;

    for (int r = 1; r < comm->nranks; r++) {
        const struct kl_peer *first = &comm->peers[nodes->rank[nodes->first[nodes->of_rank[r]]]];
        if (!kl_peers_share_memory(&comm->peers[r], first)) return KL_REACH_NONE;
        if (!kl_peers_share_memory(&comm->peers[r], &comm->peers[0])) reach = KL_REACH_NODE;
    }
    return reach;
}

static ncclResult_t arm_dump(ncclComm_t comm)
{
    if (comm->config.dump_signal < 0) return ncclSuccess;
    KL_TRY(kl_dump_arm((int)comm->config.dump_signal));
    comm->dump_armed = true;
    return ncclSuccess;
}

/* A trace as long as configured, or a little longer. */
static ncclResult_t begin_trace(ncclComm_t comm)
{
    size_t room = 1024;

    if (!*comm->config.trace) return ncclSuccess;
    while (room < (size_t)comm->config.trace_events) room *= 2;
    return kl_trace_create(room, &comm->trace);
}

static void note_step(void *ctx, const struct kl_step *step)
{
    ncclComm_t comm = ctx;
    const struct kl_trace_event event = {.kind = KL_TRACE_STEP,
                                         .channel = step->channel,
                                         .from = step->from,
                                         .to = step->to,
                                         .number = comm->cursor + 1,
                                         .count = step->bytes,
                                         .begin = step->begun,
                                         .end = kl_ticks()};

    kl_trace_add(comm->trace, KL_TRACE_RUNNER, &event);
}

static ncclResult_t create_exec(ncclComm_t comm)
{
    struct kl_exec_config config = {
        .rank = comm->rank,
        .nranks = comm->nranks,
        .graph = comm->connect,
        .tuning = &comm->tuning,
        .tuner = comm->tuner,
        .collnet = comm->net ? kl_collnet_of(comm->net) : NULL,
        .rounds = comm->rounds,
        .redops = (const struct kl_redop(*)[ncclNumOps])comm->redops,
        .connections = comm->connections,
        .memory = reach_of_memory(comm),
        .ordered = comm->config.deterministic,
        .zcopy =
            {
                .maps = comm->config.peer_direct,
                .reads = comm->config.kernel_copies != KL_KERNEL_COPIES_NEVER,
                .process = comm->peers[comm->rank].process,
            },
        .facts = comm->facts,
        .processes = comm->shared->rank_map.nprocesses > 1,
        .chain_bytes = kl_comm_chain_bytes(comm),
        .profiling = {.profiler = kl_comm_profiler(comm), .event_of = kl_comm_profile_event, .ctx = comm},
        .steps = {.step = *comm->config.trace ? note_step : NULL, .ctx = comm},
    };

    KL_TRY(kl_exec_create(&config, &comm->exec));
    return kl_exec_reserve(comm->exec, comm->task_room);
}

static ncclResult_t prepare_operations(ncclComm_t comm)
{
    struct kl_stream *stream;

    KL_TRY(arm_dump(comm));
    KL_TRY(begin_trace(comm));
    KL_TRY(fill_redops(comm));
    kl_compare_init(&comm->compare, (enum kl_check_mode)comm->config.check_mode, comm->connect->collnet);
    comm->timeout_ns = (uint64_t)comm->config.timeout_s * 1000000000u;
    comm->task_room = KL_TASKS;
    comm->tasks = aligned_alloc(KL_LINE, comm->task_room * sizeof *comm->tasks);
    comm->calls = calloc(KL_CALLS, sizeof *comm->calls);
    if (!comm->tasks || !comm->calls) return KL_NOMEM("operations");
    kl_bootstrap_on_query(comm->bootstrap, kl_desync_check_answer, comm);
    if (comm->profile) KL_TRY(kl_comm_profile_reserve(comm, comm->task_room));
    KL_TRY(create_exec(comm));
    KL_TRY(kl_comm_init_pages(comm));
    kl_prepost_init(comm);
    if (comm->devices == &kl_host_devices)
        KL_TRY(kl_user_stream_of(NULL, comm->device, &stream)); /* created now: operations need not */
    return kl_comm_connect_early(comm);
}

static void drop_operations(ncclComm_t comm)
{
    kl_rma_free(comm->rma);
    comm->rma = NULL;
    if (comm->dump_armed) kl_dump_disarm();
    comm->dump_armed = false;
    if (comm->bootstrap) kl_bootstrap_on_query(comm->bootstrap, NULL, NULL);
    kl_exec_free(comm->exec);
    kl_comm_free_pages(comm);
    free(comm->tasks);
    free(comm->calls);
    free(comm->queued);
    comm->exec = NULL;
}

/* For readers of a trace of several ranks. */
static ncclResult_t compare_clocks(ncclComm_t comm)
{
    if (!comm->trace) return ncclSuccess;
    if (comm->rank && comm->peers[comm->rank].host != comm->peers[0].host)
        return kl_clock_measure(&comm->clock, comm->bootstrap);
    kl_clock_same(&comm->clock);
    return ncclSuccess;
}

static ncclResult_t wait_for_all(ncclComm_t comm)
{
    return kl_bootstrap_barrier(comm->bootstrap);
}

/* A phase that fails undoes itself together with those before it: undo works on partial state. */
static const struct phase {
    const char *name;
    ncclResult_t (*run)(ncclComm_t comm);
    void (*undo)(ncclComm_t comm);
} phases[] = {
    {"bootstrap", join_bootstrap, leave_bootstrap},
    {"peers", kl_comm_exchange_peers, kl_comm_leave_peers},
    {"machine", kl_comm_build_topology, kl_comm_free_topology},
    {"affinity", kl_comm_bind_thread, kl_comm_unbind_thread},
    {"graphs", kl_comm_search_graphs, NULL},
    {"agreement", kl_comm_agree_plan, kl_comm_free_plan},
    {"connections", kl_comm_connect, kl_comm_disconnect},
    {"operations", prepare_operations, drop_operations},
    {"gpus", kl_comm_join_gpus, kl_comm_leave_gpus},
    {"clocks", compare_clocks, NULL},
    {"barrier", wait_for_all, NULL},
};
enum { NPHASES = sizeof phases / sizeof phases[0] };
_Static_assert((int)NPHASES <= (int)KL_PHASES_MAX, "a time is kept for every phase");

static void undo_phases(ncclComm_t comm)
{
    while (comm->init.phases_done > 0) {
        const struct phase *p = &phases[--comm->init.phases_done];
        if (p->undo) p->undo(comm);
    }
}

static ncclResult_t run_phase(ncclComm_t comm, int i)
{
    uint64_t begin = kl_now_ns();

    KL_TRY(kl_comm_failure(comm)); /* an abort, for example */
    if (comm->bootstrap) kl_bootstrap_phase(comm->bootstrap, phases[i].name);
    kl_store_release(&comm->phase, phases[i].name);
    comm->init.phases_done = i + 1; /* also when it fails: its undo handles partial state */
    ncclResult_t rc = phases[i].run(comm);
    comm->init.times[i] = (struct kl_phase_time){.name = phases[i].name, .ns = kl_now_ns() - begin};
    return rc;
}

static ncclResult_t run_phases(ncclComm_t comm)
{
    for (int i = 0; i < NPHASES; i++) KL_TRY(run_phase(comm, i));
    kl_bootstrap_phase(comm->bootstrap, KL_PHASE_RUNNING);
    kl_store_release(&comm->phase, NULL);
    return kl_comm_failure(comm);
}

static void log_times(ncclComm_t comm)
{
    char text[256] = "";
    size_t used = 0;
    uint64_t total = 0;
    const struct kl_bootstrap_traffic sent = kl_bootstrap_traffic(comm->bootstrap);

    for (int i = 0; i < NPHASES && used < sizeof text; i++) {
        total += comm->init.times[i].ns;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %.2f", i ? "," : "", comm->init.times[i].name,
                                 (double)comm->init.times[i].ns / 1e6);
    }
    KL_INFO(KL_INIT | KL_PROFILE, "Init timings: rank %d nranks %d total %.2f ms (%s ), sent %llu messages %.1f KiB",
            comm->rank, comm->nranks, (double)total / 1e6, text, (unsigned long long)sent.messages,
            (double)sent.bytes / 1024);
}

/* ---- creation ---- */

/* Other ranks wait for a rank whose init failed: tell them why it will not come. */
static void notify_peers(ncclComm_t comm, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT], me[128];

    if (!comm->bootstrap || kl_load_acquire(&comm->failed)) return;
    snprintf(text, sizeof text, "%s failed to initialise: %.800s", kl_comm_describe(comm, comm->rank, me, sizeof me),
             kl_error_text());
    kl_bootstrap_report(comm->bootstrap, comm->rank, rc == ncclRemoteError ? rc : ncclRemoteError, text);
}

static ncclComm_t allocate(const struct kl_comm_params *params, const struct kl_device_kind *devices)
{
    ncclComm_t comm = aligned_alloc(KL_LINE, (sizeof *comm + KL_LINE - 1) / KL_LINE * KL_LINE);

    if (!comm) return NULL;
    memset(comm, 0, sizeof *comm);
    comm->generation = kl_process_generation();
    comm->rank = params->rank;
    comm->nranks = params->nranks;
    comm->device = params->device;
    comm->nccl_config = params->nccl_config;
    comm->devices = devices;
    comm->creator = kl_thread_self();
    comm->busy = KL_BUSY_INIT;
    kl_store_relaxed(&comm->phase, "begin");
    if (kl_flight_create(&comm->flight)) {
        free(comm);
        return NULL;
    }
    kl_clock_init(&comm->clock);
    pthread_mutex_init(&comm->failure.lock, NULL);
    kl_comm_config_load(&comm->config);
    kl_env_plugin_log();
    comm->blocking = kl_comm_config_blocking(&comm->config, &comm->nccl_config);
    return comm;
}

/* Undo the phases and free. Queued operations have finished or failed, and no call is inside. */
static void free_comm(ncclComm_t comm)
{
    if (!kl_load_acquire(&comm->phase) && !kl_load_acquire(&comm->failed))
        kl_trace_write(comm); /* else it was written, or init never completed */
    kl_store_release(&comm->phase, "end");
    if (comm->tagged) kl_tagged_fail(comm->tagged); /* from here on it would look at records that are freed */
    undo_phases(comm);
    if (comm->ras_held) kl_ras_unref();
    free(comm->children_made.shrunk);
    kl_userops_fini(&comm->userops);
    kl_registry_fini(&comm->registry, comm->devices);
    kl_registry_fini(&comm->windows, comm->devices);
    kl_handle_release(comm);
    pthread_mutex_destroy(&comm->failure.lock);
    kl_clock_fini(&comm->clock);
    kl_tagged_free(comm->tagged);
    kl_trace_free(comm->trace);
    kl_flight_free(comm->flight);
    free(comm);
}

ncclResult_t kl_comm_begin(const struct kl_comm_params *params, ncclComm_t *user, struct ncclComm **comm)
{
    const struct kl_device_kind *devices;

    kl_comm_publish(user, NULL);
    if (kl_devices(&devices)) devices = &kl_cuda_devices; /* it joins the other ranks, and tells them (setup/peers.c) */
    struct ncclComm *c = allocate(params, devices);
    if (!c) return KL_NOMEM("a communicator");
    ncclResult_t rc = kl_thread_check_stack();
    if (!rc) rc = kl_handle_open(c);
    if (!rc) rc = kl_comm_create_tagged(c);
    if (rc) {
        free_comm(c);
        return rc;
    }
    (void)kl_handle_try(c->handle); /* no other thread has it: this cannot fail */
    kl_ras_ref(&c->config);
    c->ras_held = c->config.ras_enable;
    kl_comm_publish(user, c->handle);
    *comm = c;
    return ncclSuccess;
}

/* If another thread has ended it meanwhile, that thread frees it. */
void kl_comm_discard(struct ncclComm *c, ncclComm_t *user)
{
    bool mine = kl_handle_close(c);

    kl_comm_publish(user, NULL);
    kl_handle_leave(c);
    if (!mine) return;
    kl_handle_drain(c);
    free_comm(c);
}

/*
 * Undo partial state. The first failure counts, also another rank's, or an abort; but ranks that contradict each other
 * all find that out, and each reports it itself.
 */
static ncclResult_t give_up(ncclComm_t c, ncclResult_t rc, bool child, ncclComm_t *user)
{
    bool own = rc == ncclInvalidUsage;
    char text[KL_ERROR_TEXT];

    if (c->bootstrap && !own) rc = kl_bootstrap_await_cause(c->bootstrap, rc);
    snprintf(text, sizeof text, "%s", kl_error_text());
    notify_peers(c, rc);
    kl_comm_fail(c, c->rank, rc, text, false);
    kl_flight_on_failure(c, rc, text);
    if (!own) rc = kl_comm_failure(c);
    if (!own) snprintf(text, sizeof text, "%s", kl_error_text());
    undo_phases(c);
    if (c->blocking || child)
        kl_comm_discard(c, user);
    else
        kl_job_end(c, ncclSuccess); /* it has failed, with its own text */
    kl_error_adopt(text);
    return rc;
}

ncclResult_t kl_comm_complete(struct ncclComm *c, const struct kl_comm_params *params, ncclComm_t *user)
{
    c->params = params;
    if (params->parent) kl_comm_set_child(params->parent, c, params->follows);
    ncclResult_t rc = run_phases(c);
    if (params->parent) kl_comm_set_child(params->parent, NULL, false);
    c->params = NULL;
    if (rc) return give_up(c, rc, params->parent != NULL, user);
    kl_comm_unbind_thread(c);
    if (!params->parent && kl_process_shared_is_oversubscribed(c->shared)) kl_comm_spread_threads(c);
    log_times(c);
    KL_INFO(KL_INIT, "comm %p rank %d nranks %d device %d%s%s - Init COMPLETE", (void *)c->handle, c->rank, c->nranks,
            c->device, *c->nccl_config.name ? " commName " : "", c->nccl_config.name);
    return kl_job_end(c, ncclSuccess);
}

/* ---- the end ---- */

ncclResult_t kl_comm_finalize(ncclComm_t comm)
{
    kl_comm_quiesce(comm);
    KL_TRY(kl_comm_synchronize_gpus(comm));
    kl_store_relaxed(&comm->finalized, true);
    return kl_comm_failure_unless_revoked(comm);
}

/* ---- breaks ---- */

/* Calls of other threads that were inside fail, and leave. Nothing is launched from then on. */
static void wait_to_be_alone(ncclComm_t comm)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    while (kl_handle_callers(comm->handle) > 1 && !kl_load_acquire(&comm->job.ended))
        kl_wait_pause(&wait, KL_CORES_SHARED);
}

ncclResult_t kl_comm_revoke(ncclComm_t comm)
{
    char text[256], me[128];

    snprintf(text, sizeof text, "%s revoked the communicator", kl_comm_describe(comm, comm->rank, me, sizeof me));
    kl_comm_fail(comm, comm->rank, ncclInternalError, text, false);
    wait_to_be_alone(comm);
    kl_comm_withdraw(comm);
    kl_streams_forget_owner(comm, true);
    kl_store_release(&comm->revoked, true); /* pairs with kl_comm_failure_unless_revoked */
    return ncclSuccess;
}

/* When all have come, no rank needs connections any more; when all have gone, none is left over. */
ncclResult_t kl_comm_suspend(ncclComm_t comm)
{
    kl_comm_quiesce(comm);
    KL_TRY(kl_comm_synchronize_gpus(comm));
    KL_TRY(kl_comm_failure(comm));
    kl_bootstrap_phase(comm->bootstrap, "suspend");
    KL_TRY(kl_bootstrap_barrier(comm->bootstrap));
    kl_exec_free(comm->exec);
    comm->exec = NULL;
    kl_comm_disconnect(comm);
    comm->suspended = true;
    return kl_bootstrap_barrier(comm->bootstrap);
}

ncclResult_t kl_comm_resume(ncclComm_t comm)
{
    KL_TRY(kl_comm_failure(comm));
    kl_bootstrap_phase(comm->bootstrap, "resume");
    KL_TRY(kl_comm_connect(comm));
    KL_TRY(create_exec(comm));
    KL_TRY(kl_bootstrap_barrier(comm->bootstrap));
    comm->suspended = false;
    kl_bootstrap_phase(comm->bootstrap, KL_PHASE_RUNNING);
    return kl_comm_connect_early(comm);
}

/* If it is in an open group of another thread, that group's end frees the memory. */
static void free_or_orphan(ncclComm_t comm)
{
    uint32_t joined = KL_GROUP_JOINED;

    if (!kl_cas_acq_rel(&comm->in_group, &joined, KL_GROUP_ORPHANED)) free_comm(comm);
}

void kl_comm_destroy(ncclComm_t comm)
{
    kl_handle_drain(comm);
    kl_streams_forget_owner(comm, false); /* finalizing it has returned the failures */
    free_or_orphan(comm);
}

/* While it is being made, the ranks' records come and go. */
static const char *describe_end(ncclComm_t comm, char *text, size_t size)
{
    char me[128];

    if (kl_load_acquire(&comm->busy) == KL_BUSY_INIT)
        snprintf(text, size, "rank %d aborted the communicator while it was being made", comm->rank);
    else
        snprintf(text, size, "%s aborted the communicator", kl_comm_describe(comm, comm->rank, me, sizeof me));
    return text;
}

void kl_comm_abort(ncclComm_t comm)
{
    char text[256];

    describe_end(comm, text, sizeof text);
    kl_comm_fail(comm, comm->rank, ncclInternalError, text, false); /* first: the next steps make waiting callers
                                                                     * fail */
    kl_comm_stop_children(comm, text);
    kl_comm_stop(comm, text);
    kl_handle_drain(comm);
    kl_comm_withdraw(comm);
    kl_streams_forget_owner(comm, true);
    free_or_orphan(comm);
}

void kl_comm_leave_group(ncclComm_t comm)
{
    if (kl_swap_acq_rel(&comm->in_group, KL_GROUP_NONE) == KL_GROUP_ORPHANED) free_comm(comm);
}
