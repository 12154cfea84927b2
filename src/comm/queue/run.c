/* SPDX-License-Identifier: Apache-2.0 */
/**
 * run.c - the runner's side of a launch: wait for its turn, progress its tasks, detect stalls.
 */
#include "comm/diagnosis/dump.h"
#include "comm/queue/launch.h"

#include "base/clock.h"
#include "device/host/idle.h"
#include "os/yield.h"

enum { POLLS_PER_LOOK = 256 }; /* polls without progress between two checks of the clock and of departed ranks */
enum { AT_ONCE = 16 << 10, DIRECT_POLLS = 64 }; /* bytes, and polls, of operations that run without queueing */
enum { YIELDS = 64, USELESS_YIELDS = 2 };       /* yields in a call, and useless ones in a row that end it */
enum { CALLS_PER_POLL = 8 };                    /* one of so many calls looks, the others let another rank get ahead */
enum { LARGE = 4096, MANY = 16 }; /* elements, and messages, that take so long that reading the clock does not matter */

/* ---- turns ---- */

static void finish_launch(ncclComm_t comm, uint64_t launch, uint64_t end)
{
    kl_store_relaxed(&comm->arrivals[launch % KL_LAUNCHES], 0);
    comm->cursor = end;
    kl_store_release(&comm->tasks_done, end);      /* pairs with kl_comm_wait_for_flight: slots may be reused */
    kl_store_release(&comm->finished, launch + 1); /* pairs with kl_comm_run_launch of the next one */
}

static uint64_t end_of(const struct kl_work *work)
{
    return work->arg[KL_ARG_FIRST] + (uint32_t)work->arg[KL_ARG_COUNTS];
}

static enum kl_progress fail_launch(ncclComm_t comm, struct kl_stream *stream, struct kl_work *work)
{
    ncclResult_t rc = kl_comm_failure(comm);

    kl_connections_revoke(comm->connections); /* half-finished: no rank may read our memory through them any more */
    kl_exec_reset(comm->exec);
    kl_stream_fail(stream, comm, rc, kl_comm_failure_text(comm));
    finish_launch(comm, work->arg[KL_ARG_LAUNCH], end_of(work));
    return KL_DONE;
}

/* ---- timeouts ---- */

static void trace_wait(ncclComm_t comm)
{
    const struct kl_wait_counts now = kl_wait_counts(), then = comm->wait_counts;
    const uint64_t pauses = now.thread == then.thread
                                ? kl_trace_pauses(now.yields - then.yields, now.sleeps - then.sleeps)
                                : KL_TRACE_PAUSES_UNKNOWN;
    const struct kl_trace_event e = {.kind = KL_TRACE_WAIT,
                                     .from = -1,
                                     .to = comm->waited_for,
                                     .number = comm->begun,
                                     .count = pauses,
                                     .begin = comm->waits_since,
                                     .end = kl_ticks()};

    if (comm->waits_since) kl_trace_add(comm->trace, KL_TRACE_RUNNER, &e);
    comm->waits_since = 0;
}

static void go_on(ncclComm_t comm)
{
    if (comm->trace) trace_wait(comm);
    comm->stalls = 0;
    kl_desync_check_reset(&comm->desync);
    kl_store_relaxed(&comm->flight->waits_for, -1);
}

static ncclResult_t fail_departed(ncclComm_t comm, const char *what, int peer)
{
    const char *loss = kl_connections_loss_reason(comm->connections, peer);
    char who[128];

    if (loss) return KL_FAIL(ncclRemoteError, "%s: %s", what, loss);
    return KL_FAIL(ncclRemoteError, "%s: %s destroyed its communicator without taking part", what,
                   kl_comm_describe(comm, peer, who, sizeof who));
}

static bool runs_collective(ncclComm_t comm)
{
    return !kl_func_is_message(kl_comm_task(comm, comm->cursor)->func);
}

/* A rank that is waited for has left: perhaps with another call than this one; the ranks together can tell. */
static ncclResult_t receive_goodbye(ncclComm_t comm, int peer)
{
    char what[KL_CALL_TEXT];
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);
    ncclResult_t rc = fail_departed(comm, kl_call_text(kl_call_of_task(t), t->number, what), peer);

    if (!runs_collective(comm) && !kl_connections_loss_reason(comm->connections, peer)) return rc;
    comm->desync.culprit = peer;
    kl_desync_check_hold(comm, rc);
    return ncclSuccess;
}

static void trace_waiting(ncclComm_t comm, bool look)
{
    if (!comm->waits_since) {
        comm->waits_since = kl_ticks();
        comm->wait_counts = kl_wait_counts();
        look = true;
    }
    if (look) comm->waited_for = kl_exec_blocked_on(comm->exec, false);
}

/* Nothing moves: there is time to look at the clock, and now and then for the cause. */
static void time_waiting(ncclComm_t comm, bool look)
{
    if (!comm->timed_begin) kl_flight_time_begin(comm->flight, comm->cursor, comm->begun);
    comm->timed_begin = true;
    if (comm->trace) trace_waiting(comm, look);
    if (!look) return;
    comm->timed_end = true;
    kl_store_relaxed(&comm->flight->waits_for, kl_exec_blocked_on(comm->exec, false));
}

/* Called when nothing moved. Checks the clock and the neighbours once in some hundred polls and before a sleep. */
static ncclResult_t check_timeout(ncclComm_t comm)
{
    comm->desync.culprit = comm->rank;
    bool look = !(++comm->stalls % POLLS_PER_LOOK) || kl_idle_arming();
    time_waiting(comm, look);
    if (!look) return ncclSuccess;
    int gone = kl_exec_blocked_on(comm->exec, true);
    return gone < 0 ? kl_desync_check_stalled(comm) : receive_goodbye(comm, gone);
}

/* ---- tasks ---- */

/* False: not yet, and `*got` is the progress. */
static bool is_compared(ncclComm_t comm, const struct kl_task *t, enum kl_progress *got, ncclResult_t *rc)
{
    if (!comm->compare.on || comm->compare.number == t->number) return true;
    enum kl_progress g = kl_compare_progress(comm, t, rc);
    if (g == KL_DONE && !*rc) return true;
    if (*rc || *got != KL_MOVED) *got = g;
    return false;
}

/* Tasks from the one in progress up to `next`. */
static inline bool take_long(ncclComm_t comm, uint64_t next)
{
    if (next - comm->cursor > MANY) return true;
    for (uint64_t i = comm->cursor; i < next; i++)
        if (kl_comm_task(comm, i)->count >= LARGE) return true;
    return false;
}

/* From the task in progress up to `next`: one, or the messages of a launch. `large`: they take so long that reading the clock counts for nothing. */
static inline void begin_tasks(ncclComm_t comm, uint64_t next, bool large)
{
    if (comm->trace) comm->begun_at = kl_ticks();
    comm->begun = kl_flight_begin(comm->flight, next);
    comm->timed_begin = comm->timed_end = large;
    if (!large) return;
    comm->uses_pages = comm->pages;
    if (comm->uses_pages) kl_comm_use_pages(comm, next);
    kl_flight_time_begin(comm->flight, comm->cursor, next);
}

static __attribute__((noinline)) void trace_tasks(ncclComm_t comm, uint64_t next)
{
    uint64_t now = kl_ticks();

    for (uint64_t i = comm->cursor; i < next; i++) {
        struct kl_trace_event e = kl_trace_task(KL_TRACE_OP, kl_comm_task(comm, i));

        e.number = i + 1;
        if (!kl_func_is_message(e.func)) e.way = kl_exec_way(comm->exec);
        if (!kl_func_is_message(e.func)) e.collective = (uint32_t)kl_comm_task(comm, i)->number;
        e.begin = comm->begun_at;
        e.end = now;
        kl_trace_add(comm->trace, KL_TRACE_RUNNER, &e);
    }
}

/* Is it other than the algorithm and the protocol tell? */
static inline bool is_way_kept(const struct kl_choice *choice)
{
    return choice->peer_direct || choice->by_tuner;
}

/* `collective`: NULL for messages. */
static inline void end_tasks(ncclComm_t comm, uint64_t next, const struct kl_task *collective)
{
    if (comm->trace) trace_tasks(comm, next);
    if (comm->uses_pages) kl_hugepages_end(comm->pages);
    comm->uses_pages = false;
    if (comm->timed_end) kl_flight_time_end(comm->flight, comm->cursor, next);
    if (collective && is_way_kept(&collective->choice))
        kl_flight_way(comm->flight, comm->cursor, kl_exec_way(comm->exec));
    kl_flight_end(comm->flight, next, collective ? collective->number : 0);
    comm->cursor = next;
}

/* Is the next task known, and a collective of the same algorithm, which no other is tried before? */
static bool more_follow(ncclComm_t comm, const struct kl_task *t)
{
    uint64_t next = comm->cursor + 1;

    if (kl_load_acquire(&comm->tasks_taken) <= next) return false; /* pairs with record */
    const struct kl_task *n = kl_comm_task(comm, next);
    return !kl_func_is_message(n->func) && n->choice.algorithm == t->choice.algorithm && !n->choice.peer_direct;
}

/* The messages of a launch come last, all together. */
static enum kl_progress progress_tasks(ncclComm_t comm, uint64_t end, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    while (comm->cursor < end) {
        struct kl_task *t = kl_comm_task(comm, comm->cursor);
        bool messages = kl_func_is_message(t->func);
        if (!messages && !is_compared(comm, t, &got, rc)) return got;
        uint64_t next = messages ? end : comm->cursor + 1;
        if (comm->begun < next) begin_tasks(comm, next, take_long(comm, next));
        enum kl_progress g = messages ? kl_exec_messages(comm->exec, comm->tasks, comm->task_room - 1, comm->cursor,
                                                         end, kl_load_relaxed(&comm->prepost.next), rc)
                                      : kl_exec_collective(comm->exec, t, more_follow(comm, t), rc);
        if (*rc) return KL_DONE;
        if (g != KL_DONE) return g == KL_MOVED ? g : got;
        got = KL_MOVED;
        end_tasks(comm, next, messages ? NULL : t);
    }
    return KL_DONE;
}

/* ---- failures ---- */

static enum kl_progress fail_with(ncclComm_t comm, struct kl_stream *stream, struct kl_work *work, ncclResult_t rc)
{
    kl_comm_fail(comm, comm->desync.culprit, rc, kl_error_text(), true);
    return fail_launch(comm, stream, work);
}

/* A rank that left and cannot have known of the operation; -1: none, so the failure has another cause. */
static int find_departed(ncclComm_t comm, uint64_t end, const struct kl_task **task)
{
    if (runs_collective(comm)) {
        for (int r = 0; r < comm->nranks; r++)
            if (kl_bootstrap_has_left(comm->bootstrap, r)) return r;
        return -1;
    }
    for (uint64_t i = comm->cursor; i < end; i++) {
        *task = kl_comm_task(comm, i);
        if (kl_bootstrap_has_left(comm->bootstrap, (*task)->peer)) return (*task)->peer;
    }
    return -1;
}

/*
 * An operation has failed with `rc`. The ranks together may know a better reason: then the failure is held back. So is
 * a lost connection: it may be a consequence of a failure elsewhere whose notice is on its way.
 */
static void judge(ncclComm_t comm, uint64_t end, ncclResult_t rc)
{
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);
    int deserter = rc == ncclRemoteError ? find_departed(comm, end, &t) : -1;
    char what[KL_CALL_TEXT];

    comm->desync.culprit = deserter >= 0 ? deserter : comm->rank;
    if (deserter >= 0) rc = fail_departed(comm, kl_call_text(kl_call_of_task(t), t->number, what), deserter);
    const bool told = runs_collective(comm) ? rc != ncclInvalidUsage && rc != ncclRemoteError
                                            : rc != ncclRemoteError || deserter >= 0;
    if (told)
        kl_comm_fail(comm, comm->desync.culprit, rc, kl_error_text(), true);
    else
        kl_desync_check_hold(comm, rc);
}

static enum kl_progress fail_operation(ncclComm_t comm, struct kl_stream *stream, struct kl_work *work, ncclResult_t rc)
{
    judge(comm, end_of(work), rc);
    return comm->desync.held ? KL_MOVED : fail_launch(comm, stream, work);
}

static enum kl_progress progress_held(ncclComm_t comm, struct kl_stream *stream, struct kl_work *work)
{
    ncclResult_t rc = kl_desync_check_progress(comm);

    return rc == ncclInProgress ? KL_STALLED : fail_with(comm, stream, work, rc);
}

/* ---- without a launch ---- */

/* Is no launch in progress? */
static bool is_idle(ncclComm_t comm)
{
    return kl_load_acquire(&comm->finished) == comm->launched; /* pairs with finish_launch */
}

/* Do tasks from `first` to `end` move so little data that they take no longer than a few launches? */
static bool are_small(ncclComm_t comm, uint64_t first, uint64_t end)
{
    size_t bytes = 0;

    while (first < end && bytes <= AT_ONCE) bytes += kl_comm_task(comm, first++)->bytes;
    return bytes <= AT_ONCE;
}

static enum kl_progress progress_some(ncclComm_t comm, uint64_t end, uint32_t polls, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    while (polls-- && got != KL_DONE && !*rc) got = progress_tasks(comm, end, rc);
    return got;
}

/* Begin a single collective. STALLED: it has not begun. */
static enum kl_progress poll_queue_first(ncclComm_t comm, uint64_t end, ncclResult_t *rc)
{
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);

    if (comm->cursor + 1 != end || kl_func_is_message(t->func) || comm->compare.on) return KL_STALLED;
    begin_tasks(comm, end, t->count >= LARGE);
    const enum kl_progress got = kl_exec_try_now(comm->exec, t, rc);
    if (got == KL_DONE && !*rc) end_tasks(comm, end, t);
    return got;
}

/* ---- yielding ----
 *
 * Where ranks share cores, the ranks that an operation waits for may be waiting for this one's core. So the call yields
 * it, once, and looks again: a queued operation takes longer, and delays all that is queued behind it. Yield the more
 * rarely the longer it has been useless, or programs that compute have kept the core.
 */

static bool may_yield(ncclComm_t comm, bool patient)
{
    return patient && comm->cores == KL_CORES_SHARED && kl_backoff_due(&comm->yields);
}

/* Was it over soon? */
static bool yield_core(void)
{
    const uint64_t before = kl_now_coarse_ns();

    kl_yield();
    return kl_now_coarse_ns() == before;
}

/* The caller may run the launch that it would push. A failure fails the launch: the caller finds the communicator
 * failed. */
static bool run_alone(ncclComm_t comm, uint64_t end, uint32_t polls, bool patient)
{
    ncclResult_t rc = ncclSuccess;

    if (kl_load_acquire(&comm->failed) || comm->desync.held) return false;
    enum kl_progress got = poll_queue_first(comm, end, &rc);
    if (got == KL_MOVED) polls--;
    if (got != KL_DONE) got = progress_some(comm, end, polls, &rc);
    if (got != KL_DONE && !rc && !kl_prepost_should_queue(comm) && may_yield(comm, patient)) {
        const bool soon = yield_core();
        got = progress_some(comm, end, 1, &rc);
        kl_backoff_record(&comm->yields, soon && got != KL_STALLED);
    }
    const bool done = got == KL_DONE && !rc;
    if (rc) judge(comm, end, rc);
    if (done) kl_store_release(&comm->tasks_done, end); /* pairs with kl_comm_wait_for_flight */
    return done;
}

/* Run it at once; false: other work is queued before it, or it has to wait. */
static bool run_here(ncclComm_t comm, struct kl_stream *stream, uint64_t end, uint32_t polls, bool patient)
{
    if (!is_idle(comm) || !kl_device_acquire_if_idle(comm->devices, stream)) return false;
    const bool done = run_alone(comm, end, polls, patient);
    kl_stream_release_run(stream);
    return done;
}

/* ---- behind queued operations ----
 *
 * A rank that finds no data there queues its call, and would queue every later one: with a non-empty queue nothing runs
 * at once. So it first looks at the queue if that holds nothing but small tasks of this communicator. It looks the more
 * rarely the longer that has been useless.
 */

static bool may_poll_queue(ncclComm_t comm, struct kl_stream *stream, bool patient)
{
    if (comm->cores == KL_CORES_SHARED && !patient) return false;
    if (kl_load_acquire(&comm->tasks_done) < comm->large_until) return false;
    return comm->last_stream == stream && kl_backoff_due(&comm->looks);
}

/* Yield as long as that is useful. Returns the last progress; MOVED also if only an earlier yield moved data. */
static enum kl_progress run_yielding(ncclComm_t comm, struct kl_stream *stream)
{
    enum kl_progress got = KL_STALLED, last = KL_STALLED;
    bool soon = true;

    for (int yields = 0, useless = 0; yields < YIELDS && useless < USELESS_YIELDS && soon && last != KL_DONE;
         yields++) {
        soon = yield_core();
        last = kl_device_run_own(comm->devices, stream, comm);
        useless = last == KL_STALLED ? useless + 1 : 0;
        if (last != KL_STALLED) got = last;
    }
    kl_backoff_record(&comm->yields, soon && last != KL_STALLED);
    return got;
}

/* DONE: nothing is queued any more. */
static enum kl_progress run_queue(ncclComm_t comm, struct kl_stream *stream, bool patient)
{
    const enum kl_progress got = kl_device_run_own(comm->devices, stream, comm);

    if (got == KL_DONE || !kl_prepost_should_yield(comm) || !may_yield(comm, patient)) return got;
    const enum kl_progress then = run_yielding(comm, stream);
    return then == KL_STALLED ? got : then;
}

/* The same, behind queued operations. */
static bool catch_up(ncclComm_t comm, struct kl_stream *stream, uint64_t end, bool patient)
{
    if (!may_poll_queue(comm, stream, patient)) return false;
    const enum kl_progress got = run_queue(comm, stream, patient);
    kl_backoff_record(&comm->looks, got == KL_DONE || (got == KL_MOVED && comm->cores == KL_CORES_SHARED));
    return got == KL_DONE && run_here(comm, stream, end, 1, patient);
}

/*
 * One rank runs ahead of another, which finds no data: if the other polled at each call, it would wait for the very
 * line that is written at that moment, at each operation, and slow down the writer. So it polls only every
 * CALLS_PER_POLL-th call.
 */
static bool skips_poll(ncclComm_t comm, uint64_t first)
{
    const int func = kl_comm_task(comm, first)->func;

    return comm->cores == KL_CORES_OWN && kl_func_info[func].rooted && ++comm->behind % CALLS_PER_POLL;
}

bool kl_comm_try_run_now(ncclComm_t comm, struct kl_stream *stream, uint32_t ntasks, bool patient)
{
    const uint64_t end = kl_load_relaxed(&comm->tasks_taken);
    const bool waits = patient && comm->cores == KL_CORES_OWN && kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE;

    if (ntasks > MANY || !are_small(comm, end - ntasks, end)) {
        comm->large_until = end;
        return false;
    }
    if (!is_idle(comm) && skips_poll(comm, end - ntasks)) return false;
    if (!is_idle(comm)) return !kl_prepost_may_only_queue(comm, end - ntasks) && catch_up(comm, stream, end, patient);
    return run_here(comm, stream, end, waits ? DIRECT_POLLS : 1, patient);
}

/* ---- a launch ---- */

enum kl_progress kl_comm_run_launch(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    uint64_t launch = work->arg[KL_ARG_LAUNCH];
    uint32_t streams = (uint32_t)(work->arg[KL_ARG_COUNTS] >> 32);
    ncclResult_t rc = ncclSuccess;

    if (kl_load_acquire(&comm->finished) != launch) return KL_STALLED; /* pairs with finish_launch */
    if (streams && kl_load_acquire(&comm->arrivals[launch % KL_LAUNCHES]) != streams) return KL_STALLED;
    if (kl_load_acquire(&comm->failed)) return fail_launch(comm, stream, work);
    if (comm->desync.held) return progress_held(comm, stream, work);

    enum kl_progress got = progress_tasks(comm, end_of(work), &rc);
    if (rc) return fail_operation(comm, stream, work, rc);
    if (got != KL_DONE && comm->prepost.on && kl_prepost_post(comm)) got = KL_MOVED;
    if (!rc && got == KL_STALLED) got = kl_connections_relay(comm->connections);
    if (!rc && got == KL_STALLED && kl_dump_due(&comm->dumped)) kl_comm_dump(comm);
    if (!rc && got == KL_STALLED) rc = check_timeout(comm);
    if (rc) return fail_with(comm, stream, work, rc);
    if (got == KL_STALLED && kl_idle_arming() && comm->compare.awaited < 0 && kl_exec_sleep_on(comm->exec))
        kl_idle_registered();
    if (got != KL_STALLED && comm->stalls) go_on(comm);
    if (got == KL_DONE) finish_launch(comm, launch, end_of(work));
    return got;
}

enum kl_progress kl_comm_join_launch(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    uint64_t launch = work->arg[KL_ARG_LAUNCH];

    if (kl_load_acquire(&comm->finished) > launch) { /* pairs with finish_launch */
        if (kl_load_acquire(&comm->failed))
            kl_stream_fail(stream, comm, kl_comm_failure(comm), kl_comm_failure_text(comm));
        kl_fetch_sub_acq_rel(&comm->joins_left, 1); /* the last access to the communicator */
        return KL_DONE;
    }
    if (work->arg[KL_ARG_COUNTS]) return KL_STALLED;
    work->arg[KL_ARG_COUNTS] = 1;
    kl_fetch_add_acq_rel(&comm->arrivals[launch % KL_LAUNCHES], 1); /* pairs with kl_comm_run_launch */
    return KL_MOVED;
}
