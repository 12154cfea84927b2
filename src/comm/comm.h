/* SPDX-License-Identifier: Apache-2.0 */
/**
 * comm.h - the communicator: owns bootstrap, channels and connectors, and runs its operations in the order of issue.
 *
 * Operations are recorded as tasks in a ring of the communicator, and each call (or each group) queues one launch on the
 * user's stream. Launches of one communicator run one after the other, whatever streams they are on: launch n starts when
 * `finished` is n. So there is one operation in progress at a time, and its state needs no allocation.
 *
 *     user thread:  check -> choose -> tasks[] -> stream push              issue.c, record.c, launch.c
 *     runner:       wait for `finished` -> progress tasks -> finished + 1  run.c, coll/engine/exec.c
 *
 * Failures: the first one wins, is kept (code and sentence), fails every later operation, is sent to the other ranks,
 *           and is reported by ncclCommGetAsyncError and ncclGetLastError.
 * Memory order: finished is stored with release after the last task, loaded with acquire by the next launch: operation
 *           state passes from runner to runner. failed is stored with release after the text.
 * Threads:  one user thread at a time; any runner; the event loop thread reports failures; abort from any thread.
 * Fork:     a child may not use its copy for anything: the connections, the work and the memory that peers share are
 *           the parent's.
 */
#ifndef KL_COMM_COMM_H
#define KL_COMM_COMM_H

#include "base/error.h"
#include "base/backoff.h"
#include "bootstrap/bootstrap.h"
#include "channel/connections.h"
#include "coll/engine/exec.h"
#include "coll/schedule/signature.h"
#include "comm/queue/prepost.h"
#include "comm/queue/compare.h"
#include "comm/config.h"
#include "comm/handle.h"
#include "comm/diagnosis/desync_check.h"
#include "comm/diagnosis/clock.h"
#include "comm/diagnosis/flight.h"
#include "comm/diagnosis/profile.h"
#include "comm/diagnosis/trace.h"
#include "comm/registry.h"
#include "comm/queue/userops.h"
#include "comm/setup/nccl_config.h"
#include "comm/setup/process_shared.h"
#include "device/device.h"
#include "device/host/wait.h"
#include "graph/p2p.h"
#include "graph/tuning.h"
#include "os/hugepages.h"
#include "rma/rma.h"
#include "tagged/tagged.h"
#include "topo/topo.h"
#include "transport/peer.h"

#include <pthread.h>
#include <stdalign.h>

/** A task and the stream it was issued on, collected between group start and end. */
struct kl_queued {
    struct kl_task task;
    union {
        struct kl_stream *stream;
        cudaStream_t handle; /* on GPUs */
    };
    uint32_t number; /* of the stream, when the call was made */
    struct kl_profile_call call;
};

/** One-sided operations of a group: called before its first collective or message, or later. */
enum kl_onesided_order { KL_ONESIDED_BEFORE, KL_ONESIDED_AFTER, KL_ONESIDED_ORDERS };
struct kl_onesided {
    struct kl_rma_op *first, *last;
};

/** The bootstrap's phase between exchanges, when operations run (kl_bootstrap_phase): a failure then is not attributed
 * to the last exchange. */
#define KL_PHASE_RUNNING "operations"

enum { KL_TASKS = 1024, KL_LAUNCHES = 1024, KL_PHASES_MAX = 16 }; /* powers of two */
enum { KL_COMM_TUNER_NAME = 256 };                                /* bytes */

struct kl_failure {
    pthread_mutex_t lock;
    char text[KL_ERROR_TEXT];    /* under lock */
    _Atomic uint32_t is_written; /* other ranks hear of it before the communicator has `failed` here */
};

/** The job in progress on a communicator, so that no other may begin: job.h. */
enum kl_busy {
    KL_IDLE,
    KL_BUSY_INIT,
    KL_BUSY_FINALIZE,
    KL_BUSY_CHILD,
    KL_BUSY_WINDOW,
    KL_BUSY_REVOKE,
    KL_BUSY_SUSPEND,
    KL_SUSPENDED, /* not a job: until it is resumed */
    KL_BUSY_RESUME,
    KL_BUSY_KINDS
};

struct kl_job {
    ncclResult_t rc;    /* of the last one; under the failure's lock, as the following */
    bool failed_before; /* `rc` is that of an earlier one of a group, of which some are still to come */
    char text[KL_ERROR_TEXT];
    struct kl_bootstrap *bootstrap; /* stopped by an abort; set from joining until leaving, else NULL */
    struct ncclComm *child;         /* being made; it is aborted with its parent */
    bool child_follows;             /* the child also fails with its parent */
    _Atomic bool ended;             /* the communicator is aborted, and so is any child */
};

/** The children so far, so that no two have the same secret. children.c */
struct kl_child_counter {
    uint32_t splits;
    uint64_t *shrunk; /* the members of each child by shrinking, as a number */
    size_t nshrunk;
    bool has_id; /* an id exists for the ranks that join the next grown communicator */
    ncclUniqueId id;
};

/** How a communicator is made: at a rendezvous, or from ranks of a parent. */
struct kl_comm_params {
    const ncclUniqueId *ids; /* of the rendezvous, the same on all ranks; NULL: all members are the parent's */
    int nids;
    int nranks, rank, device;
    struct kl_nccl_config nccl_config;
    struct ncclComm *parent; /* NULL: none. It stays until the child is complete: creating the child is its job */
    bool follows;            /* the child fails if the parent does meanwhile */
    const int32_t *member;   /* the parent's ranks of the members, by new ranks */
    struct kl_salt salt;
};

struct kl_phase_time {
    const char *name;
    uint64_t ns;
};

/** State of init.c: the phases done, and the thread's CPUs to restore. */
struct kl_init {
    int phases_done;
    struct kl_phase_time times[KL_PHASES_MAX];
    struct kl_cpuset *home; /* the thread's CPUs before it moved near the device; NULL: it did not move */
};

struct ncclComm {
    struct kl_slot *slot;
    ncclComm_t handle;   /* the users' handle of it */
    uint32_t generation; /* of the process that created it (os/process.h): no other may use it */

    /* hot: read by every operation, constant after init */
    int rank, nranks, device;
    const struct kl_device_kind *devices; /* the kind of `device` */
    struct kl_exec *exec;
    struct kl_connections *connections;
    struct kl_flight *flight;        /* its last operations */
    struct kl_trace *trace;          /* NULL: no trace is wanted */
    struct kl_comm_profile *profile; /* NULL: there is no profiler plugin */
    struct kl_redop redops[ncclNumTypes][ncclNumOps];
    enum kl_wait_cores cores; /* of the ranks that wait for each other */

    alignas(KL_LINE) _Atomic uint32_t failed; /* ncclResult_t of the first failure */
    _Atomic uint32_t busy;                    /* enum kl_busy */
    uint32_t jobs_behind;                     /* jobs of one group behind the first; the group's, then their runner's */

    /* the user thread's */
    alignas(KL_LINE) uint64_t launched; /* launches queued */
    _Atomic uint64_t tasks_taken;       /* tasks recorded; written by the user thread, as: */
    _Atomic uint64_t collectives;       /* of them, also those without elements */
    struct kl_past_call *calls;         /* the last KL_CALLS of them, by number */
    struct kl_task *tasks;              /* ring; grows while nothing is in flight */
    uint64_t task_room;                 /* a power of two */
    uint64_t timeout_ns;                /* of the next tasks, as in a task */
    struct kl_stream *last_stream;      /* of the last launch */
    uint64_t last_ticket;
    uint64_t large_until;            /* up to this task some are not small, or wait for several streams */
    uint32_t behind;                 /* calls that found operations queued in which ranks run ahead of others */
    struct kl_backoff looks, yields; /* polls of the queue before more is queued; yields of the core, where ranks share
                                     * it */
    _Atomic bool finalized;
    _Atomic bool revoked;     /* it failed because it was revoked, and may have children */
    bool suspended;           /* has no connections; the job's */
    struct kl_queued *queued; /* of the open group; grows, is never shrunk */
    size_t nqueued, queued_room;
    bool queued_several_streams,
        queued_to_self; /* of the group: some are on different streams; some are messages to this rank */
    struct kl_onesided onesided[KL_ONESIDED_ORDERS]; /* of the open group */
    struct ncclComm *group_next;                     /* in the list of the open group */
    _Atomic uint32_t in_group;                       /* enum kl_in_group */
    _Atomic(const void *) deferred_by;  /* the thread whose open group has deferred calls, but not its end */
    bool ends_in_group;                 /* that group ends it */
    _Atomic(const void *) group_thread; /* the thread whose group it is in (kl_thread_self) */
    _Atomic(const void *) waits_inline; /* an issuer that waits for a stream: functions that run there may issue */

    /* the runner's: passed on with `finished` */
    alignas(KL_LINE) _Atomic uint64_t finished; /* launches */
    _Atomic uint64_t tasks_done;                /* tasks with reusable slots */
    uint64_t cursor;                            /* task in progress */
    uint64_t begun;                             /* tasks that have had their turn */
    struct kl_wait_counts wait_counts;          /* for the trace: the runner's thread's counts when it began to wait */
    uint64_t begun_at, waits_since;             /* for the trace: ticks; 0: it does not wait */
    int32_t waited_for;                         /* for the trace */
    struct kl_hugepages *pages;                 /* of its send and receive buffers; NULL: they stay as they are */
    bool uses_pages;                            /* the task in progress does */
    bool timed_begin, timed_end;                /* for the task in progress: its begin was timed, its end is to be
                                                 * timed */
    uint32_t stalls;                            /* polls without progress */
    uint32_t dumped;                            /* dump requests served (dump.h) */
    struct kl_compare compare;                  /* calls of all ranks, before data move */
    struct kl_desync_check desync;              /* findings about an operation that cannot go on */
    _Atomic uint32_t joins_left;                /* pieces of join work that still access the communicator */
    _Atomic uint32_t arrivals[KL_LAUNCHES];     /* streams that have reached a launch that joins several */

    /* from the plan, constant after init */
    struct kl_process_shared *shared; /* shared by the ranks of this process */
    struct kl_domain *domain;         /* of the shared state: this rank's, with its graphs */
    const struct kl_peer *peers;      /* the shared state's, nranks */
    const struct kl_topo *topo;       /* the domain's */
    const struct kl_net *net;         /* NULL until kl_comm_find_net */
    struct kl_connect *connect;       /* the joined graphs, as this rank sees them */
    struct kl_p2p_channels p2p;
    struct kl_p2p_round *rounds; /* nranks */
    struct kl_tuning tuning;     /* with kl_tuning_host, or constants of a tuner */
    struct kl_tuner *tuner;      /* NULL: none */
    char tuner_name[KL_COMM_TUNER_NAME];
    struct kl_select_facts facts;

    /* cold */
    struct kl_failure failure;
    struct kl_job job;
    struct kl_child_counter children_made;
    struct kl_registry registry, windows;
    struct kl_tagged *tagged;
    struct kl_rma *rma; /* NULL until the first window is made; `windows_attempted` counts the attempts */
    int windows_attempted;
    struct kl_userops userops;
    uint8_t barrier;                                 /* the element that barriers reduce */
    struct kl_redop bits[ncclNumTypes][KL_BITS_OPS]; /* prepared operators of kolo.h, at first use */
    struct kl_comm_config config;
    struct kl_nccl_config nccl_config;
    bool blocking;
    struct kl_bootstrap *bootstrap;
    int local_ranks;           /* on this host */
    struct kl_comm_gpus *gpus; /* queue/gpus.h; NULL on host devices */
    bool gpus_use_engine;      /* its operations are the engine's, not the GPUs' (queue/crossing.h) */
    _Atomic(void (*)(struct ncclComm *)) end_waits; /* of streams, when the communicator fails; NULL: none wait */
    void (*settle_waits)(struct ncclComm *comm);    /* its work was withdrawn; NULL: no stream waits for that */
    const void *creator;                            /* the thread that began it (kl_thread_self) */
    bool one_memory;                                /* all ranks share memory, and may use it */
    const struct kl_comm_params *params;            /* while it is being made */
    struct kl_init init;
    _Atomic(const char *) phase; /* of init or of the end; NULL in between */
    _Atomic uint64_t name;       /* the same at every rank: rank 0's job (transport/peer.h); 0: not known yet */
    struct kl_clock clock;
    _Atomic bool flight_written; /* its flight record was written */
    bool dump_armed, ras_held;

    /* used by small operations, but large */
    alignas(KL_LINE) struct kl_prepost prepost; /* posting of queued operations before their turn */
};

/** Task `number`, which is in flight. */
static inline struct kl_task *kl_comm_task(ncclComm_t comm, uint64_t number)
{
    return &comm->tasks[number & (comm->task_room - 1)];
}

/** The call of a task, as all ranks have to make it. */
static inline struct kl_call kl_call_of_task(const struct kl_task *t)
{
    const struct kl_call call = kl_call_of(t->func, t->type, kl_task_op_code(t), t->peer, t->count, t->number);

    return t->limits ? kl_call_configured(call, t->limits) : call;
}

/** Is it in the open group of a thread? If so, ending it from another thread leaves the memory to the group's end. */
enum kl_in_group { KL_GROUP_NONE, KL_GROUP_JOINED, KL_GROUP_ORPHANED };

/* ---- life: init.c ---- */

/** Write a user's pointer, which other threads may read. */
static inline void kl_comm_publish(ncclComm_t *user, ncclComm_t handle)
{
    kl_store_release((_Atomic(ncclComm_t) *)user, handle);
}

/**
 * Allocate one, and write its handle to `*user`: from now on any thread can abort it. It is entered and busy until
 * kl_comm_complete or kl_comm_discard. On failure `*user` is NULL.
 */
ncclResult_t kl_comm_begin(const struct kl_comm_params *params, ncclComm_t *user, struct ncclComm **comm);

/**
 * Join, all phases; `params` as in kl_comm_begin. If it fails, one that is blocking, or a child, is freed and `*user` is
 * NULL; another one stays, as a failed one. Not busy any more, and left.
 */
ncclResult_t kl_comm_complete(struct ncclComm *comm, const struct kl_comm_params *params, ncclComm_t *user);

/** Discard a communicator that will not be created: free it. `*user` is NULL. */
void kl_comm_discard(struct ncclComm *comm, ncclComm_t *user);

/** Run the queued operations; then no more may be issued. From inside (handle.h). */
ncclResult_t kl_comm_finalize(ncclComm_t comm);

/** Cancel the operations in progress, here only. From inside, by a job. */
ncclResult_t kl_comm_revoke(ncclComm_t comm);

/** Every rank calls it: finish the queued operations, and release the connections and their resources. By a job. */
ncclResult_t kl_comm_suspend(ncclComm_t comm);

/** Every rank calls it: be ready for connections again. By a job. */
ncclResult_t kl_comm_resume(ncclComm_t comm);

/** Free a finalized communicator whose handle the caller has closed; waits (briefly) for callers to leave. */
void kl_comm_destroy(ncclComm_t comm);

/** The same without waiting for queued operations: fail the communicator here and everywhere, and withdraw its work. */
void kl_comm_abort(ncclComm_t comm);

/** The group of the calling thread has ended. If the communicator was ended meanwhile, this frees it. */
void kl_comm_leave_group(ncclComm_t comm);

/* ---- phases: peers.c, topology.c, bind.c, graphs.c, agree.c, connect.c ---- */

ncclResult_t kl_comm_exchange_peers(ncclComm_t comm);
void kl_comm_leave_peers(ncclComm_t comm);
ncclResult_t kl_comm_build_topology(ncclComm_t comm);
void kl_comm_free_topology(ncclComm_t comm);
ncclResult_t kl_comm_bind_thread(ncclComm_t comm);
void kl_comm_unbind_thread(ncclComm_t comm);
/** Where ranks share CPUs and have none of their own: continue this thread on one of its CPUs, which the ranks of a
 * machine take in turn; from there the kernel may move it as usual. Ranks that wait for each other yield, which the
 * kernel takes for work: without this, it may leave three of four on one CPU for a second, and each operation takes
 * twice as long. */
void kl_comm_spread_threads(ncclComm_t comm);
ncclResult_t kl_comm_search_graphs(ncclComm_t comm);
ncclResult_t kl_comm_agree_plan(ncclComm_t comm);
void kl_comm_free_plan(ncclComm_t comm);
ncclResult_t kl_comm_connect(ncclComm_t comm);

/**
 * Bytes that a chain of ranks (broadcast, reduce) hands on at a time, at most; 0: as many as fit in a slot. In small
 * chunks ranks work at the same time, where they have cores for that. All ranks compute the same.
 */
size_t kl_comm_chain_bytes(ncclComm_t comm);

/* ---- facts.c ---- */

/** Of this rank, for all others; a host's leader measures the machine, if its process has not. */
void kl_comm_describe_facts(ncclComm_t comm, struct kl_rank_record *me);

/** From the records of all. */
void kl_comm_derive_facts(ncclComm_t comm);
void kl_comm_log_facts(ncclComm_t comm);
void kl_comm_disconnect(ncclComm_t comm);

/** With NCCL_RUNTIME_CONNECT=0: make the algorithms' connections, which are otherwise made at first use. */
ncclResult_t kl_comm_connect_early(ncclComm_t comm);

/** Can the memory of this communicator's operations have huge pages? Then `comm->pages` keeps their state, until
 * kl_comm_free_pages. */
ncclResult_t kl_comm_init_pages(ncclComm_t comm);
void kl_comm_free_pages(ncclComm_t comm);

/** The device of the net by which other hosts reach this rank. The net was initialised. */
int kl_comm_net_device(ncclComm_t comm);

/** How a NIC gets at memory of this rank's GPU for messages to a peer, or from it; memory 0: they go over host memory. Any thread. */
void kl_comm_find_reach(ncclComm_t comm, int peer, bool sends, struct kl_net_reach *reach);

/** Set comm->net, unless that is done: the net between hosts, for which there is no need otherwise. ncclInvalidUsage: none of the name asked for. */
ncclResult_t kl_comm_find_net(ncclComm_t comm);

/** Is there a rank that another one reaches over the network only, in this host or in others? The same for all ranks. */
bool kl_comm_needs_net(ncclComm_t comm);

/** Rings, trees and numbers of channels, in NCCL's words (INFO): report.c. */
void kl_comm_log_channels(ncclComm_t comm);

/* ---- operations: issue.c, record.c, launch.c, run.c ---- */

/** Count it. Success. */
ncclResult_t kl_comm_record_empty(ncclComm_t comm, struct kl_task *task);

/** Number of the group's operations with a stream of their own to check: 1 where all have the same stream. */
static inline size_t kl_comm_queued_streams(const struct ncclComm *comm)
{
    return comm->queued_several_streams || !comm->nqueued ? comm->nqueued : 1;
}

/** Check the group's operations. */
ncclResult_t kl_comm_check_queued(ncclComm_t comm);

/** Memory for `n` operations of one launch. */
ncclResult_t kl_comm_reserve(ncclComm_t comm, size_t n);

/** Make room for `n` operations of a launch: as above, and wait until enough of those in flight have finished. */
ncclResult_t kl_comm_make_room(ncclComm_t comm, size_t n);

/** Launch the queued operations, at least one, together: there is room. `alone`: no other launch may come before they
 * can run. */
void kl_comm_launch_together(ncclComm_t comm, const struct kl_queued *ops, size_t n, bool alone);

/** Launch the group's operations, once checked and with room. */
void kl_comm_launch_queued(ncclComm_t comm, bool alone);

/** If the last launch went to a stream that runs inside the call, run it. */
void kl_comm_run_inline(ncclComm_t comm);

/** The tuning model's time for the group's operations, microseconds; messages are not in the model. */
float kl_comm_time_queued(ncclComm_t comm);

/** Forget the group's operations. */
void kl_comm_drop_queued(ncclComm_t comm);

/** Wait until every launch has finished. */
void kl_comm_quiesce(ncclComm_t comm);

/** Withdraw every launch of a failed communicator, also behind work of others that does not end. Does not wait. */
void kl_comm_withdraw(ncclComm_t comm);

/* ---- messages with tags: tagged.c ---- */

/** Create comm->tagged; it has a slot, and is freed with the communicator. */
ncclResult_t kl_comm_create_tagged(ncclComm_t comm);

/** Callbacks of the bootstrap. */
void kl_comm_on_packet(void *ctx, int from, const void *data, size_t bytes);
void kl_comm_on_left(void *ctx, int peer);

/* ---- failures: failure.c ---- */

/** Record a failure (the first one counts) and, unless it came from them, tell the other ranks. Any thread. */
void kl_comm_fail(ncclComm_t comm, int culprit, ncclResult_t code, const char *text, bool tell);

/** An abort, or a failure, stops this bootstrap from now on; NULL: none. */
void kl_comm_set_abort_target(struct ncclComm *comm, struct kl_bootstrap *bootstrap);

/** `child` is being made: it is aborted with its parent, and, if it follows it, fails with it. NULL: none. */
void kl_comm_set_child(struct ncclComm *parent, struct ncclComm *child, bool follows);

/** This rank stops a failed communicator: notify the others, and end the waits of this process for them. */
void kl_comm_stop(struct ncclComm *comm, const char *text);

/** Stop its children as well. */
void kl_comm_stop_children(struct ncclComm *comm, const char *text);

/** Make the text of the recorded failure the calling thread's. Returns its code. */
ncclResult_t kl_comm_adopt_failure(ncclComm_t comm);

/** The sticky failure, adopted as the calling thread's error text; ncclSuccess if there is none. Any thread. */
static inline ncclResult_t kl_comm_failure(ncclComm_t comm)
{
    return kl_load_acquire(&comm->failed) ? kl_comm_adopt_failure(comm) : ncclSuccess; /* pairs with kl_comm_fail */
}

/** The same, but a revoked communicator has not failed. */
ncclResult_t kl_comm_failure_unless_revoked(ncclComm_t comm);

/** The same where jobs may be in progress: ncclInProgress, or how the last one ended, if nothing has failed. Any
 * thread. */
ncclResult_t kl_comm_state(ncclComm_t comm);

/** The text of the failure; "" if there is none. Valid as long as the communicator. */
const char *kl_comm_failure_text(ncclComm_t comm);

/** "rank 3 (host b, pid 12)" for texts. */
const char *kl_comm_describe(ncclComm_t comm, int rank, char *text, size_t size);

#endif
