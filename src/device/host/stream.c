/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/stream.h"

#include "base/error.h"
#include "base/fork_lock.h"
#include "base/threadlocal.h"
#include "device/host/executor.h"
#include "device/host/wait.h"
#include "device/host/current.h"
#include "device/host/idle.h"
#include "os/futex.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARK_NS = 20000000 }; /* longest sleep without a wake-up */
/* Polls without progress, each of them a system call if there is a network, between attempts to rest. */
enum { POLLS_PER_REST = 256 };
enum { MAX_DEFAULTS = 4096 }; /* devices that can have a default stream */

/* All streams ever made, newest first. A reader follows `next` without the lock: entries are only added. */
static struct {
    _Atomic(struct kl_stream *) first;
    _Atomic(struct kl_stream *) defaults[MAX_DEFAULTS];
    _Atomic uint32_t threads;
    _Atomic uint32_t leading; /* a waiting thread runs all streams */
    pthread_mutex_t lock;     /* create, destroy */
    uint32_t streams;         /* ever made; under lock */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A small number that identifies the calling thread; never 0. */
static uint32_t thread_number(void)
{
    static KL_THREAD_LOCAL uint32_t number;

    if (!number) number = 1 + kl_fetch_add_relaxed(&registry.threads, 1);
    return number;
}

struct kl_stream *kl_streams_first(void)
{
    return kl_load_acquire(&registry.first); /* pairs with the release in add_stream */
}

struct kl_stream *kl_streams_next_of(int device, struct kl_stream *s)
{
    s = s ? s->next : kl_streams_first();
    while (s && (kl_load_acquire(&s->live) == KL_STREAM_FREE || kl_stream_device(s) != device)) s = s->next;
    return s;
}

/* ---- slots ---- */

static bool has_slot(struct kl_stream *s, uint64_t ticket)
{
    return ticket < KL_STREAM_SLOTS || kl_stream_reached(s, ticket - KL_STREAM_SLOTS + 1);
}

static void publish(struct kl_stream *s, uint64_t ticket, const struct kl_work *work)
{
    s->slots[ticket % KL_STREAM_SLOTS].work = *work;
    kl_swap_seq_cst(&s->slots[ticket % KL_STREAM_SLOTS].seq, ticket + 1); /* before kl_executor_notify looks */
}

/* Move overflowed work into its slot, if that is free now. False: there was none. */
static bool refill(struct kl_stream *s)
{
    const struct kl_overflow_work *w;
    bool any = false;

    kl_overflow_lock(&s->overflow);
    for (; (w = s->overflow.first) && has_slot(s, w->ticket); any = true) {
        publish(s, w->ticket, &w->work);
        kl_overflow_drop_first(&s->overflow);
    }
    kl_overflow_unlock(&s->overflow);
    return any;
}

/* ---- fork: the child has the streams, but empty: queued work is the parent's, and its runners do not exist in the
 * child ---- */

static void empty(struct kl_stream *s)
{
    kl_overflow_clear(&s->overflow);
    kl_store_relaxed(&s->head, kl_load_relaxed(&s->tail));
    kl_store_relaxed(&s->running, 0);
    kl_store_relaxed(&s->waiter, 0);
    kl_store_relaxed(&s->function, 0);
    kl_fetch_and_acq_rel(&s->flags, ~KL_STREAM_CAPTURING);
    if (kl_load_relaxed(&s->live) == KL_STREAM_LEAVING) kl_store_relaxed(&s->live, KL_STREAM_FREE);
    kl_failures_init(&s->failures);
}

static void empty_all(void)
{
    kl_executor_after_fork();
    kl_idle_after_fork();
    kl_store_relaxed(&registry.leading, 0);
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) empty(s);
}

KL_FORK_LOCK(registry.lock, empty_all());

/* Before the first stream no state needs resetting. */
static void lock_for_life(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&registry.lock);
}

/* ---- life ---- */

static struct kl_stream *reuse_stream(void)
{
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next)
        if (kl_load_acquire(&s->live) == KL_STREAM_FREE) return s; /* pairs with retire */
    return NULL;
}

static struct kl_stream *add_stream(void)
{
    struct kl_stream *s = aligned_alloc(KL_LINE, (sizeof *s + KL_LINE - 1) / KL_LINE * KL_LINE);

    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    kl_failures_init(&s->failures);
    kl_overflow_init(&s->overflow);
    s->next = kl_load_relaxed(&registry.first);
    kl_store_release(&registry.first, s); /* pairs with kl_streams_first */
    return s;
}

static struct kl_stream *take_stream(unsigned flags, int device)
{
    struct kl_stream *s = reuse_stream();

    if (!s) s = add_stream();
    if (!s) return NULL;
    kl_store_relaxed(&s->flags, flags);
    kl_store_relaxed(&s->cores, KL_CORES_OWN);
    kl_store_relaxed(&s->device, device);
    kl_store_relaxed(&s->waits_for, 0); /* it may belong to the default stream of another device */
    kl_store_relaxed(&s->waited_for, 0);
    kl_store_relaxed(&s->number, ++registry.streams);
    kl_store_release(&s->live, KL_STREAM_LIVE);
    return s;
}

/* Under lock. NULL: there is no memory. */
static struct kl_stream *take_default(int device)
{
    struct kl_stream *s = kl_load_relaxed(&registry.defaults[device]);

    if (!s) s = take_stream(KL_STREAM_IS_DEFAULT, device);
    if (s) kl_store_release(&registry.defaults[device], s); /* pairs with kl_stream_default */
    return s;
}

static ncclResult_t check_default(int device)
{
    if (device >= 0 && device < MAX_DEFAULTS) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "device %d has no default stream (0 to %d have)", device, MAX_DEFAULTS - 1);
}

/* Under lock. The device's default stream takes part in the ordering from now on. */
static struct kl_stream *take_blocking(unsigned flags, int device)
{
    struct kl_stream *own = take_default(device);

    if (!own) return NULL;
    kl_fetch_or_acq_rel(&own->flags, KL_STREAM_ORDERED);
    return take_stream(flags | KL_STREAM_ORDERED, device);
}

static struct kl_stream *take_new(unsigned flags, int device)
{
    return flags & KOLO_STREAM_BLOCKING ? take_blocking(flags, device) : take_stream(flags, device);
}

ncclResult_t kl_stream_create_on(int device, unsigned flags, struct kl_stream **stream)
{
    if (flags & ~(KOLO_STREAM_INLINE | KOLO_STREAM_BLOCKING))
        return KL_FAIL(ncclInvalidArgument, "unknown stream flags 0x%x", flags);
    if (flags & KOLO_STREAM_BLOCKING) KL_TRY(check_default(device));
    lock_for_life();
    struct kl_stream *s = take_new(flags, device);
    pthread_mutex_unlock(&registry.lock);
    if (!s) return KL_NOMEM("a stream");
    *stream = s;
    return ncclSuccess;
}

ncclResult_t kl_stream_create(unsigned flags, struct kl_stream **stream)
{
    return kl_stream_create_on(kl_host_current(), flags, stream);
}

ncclResult_t kl_stream_destroy(struct kl_stream *stream)
{
    ncclResult_t rc = kl_stream_synchronize(stream, kl_stream_tail(stream));
    kl_failures_clear(&stream->failures);
    kl_store_relaxed(&stream->number, 0);
    kl_store_release(&stream->live, KL_STREAM_FREE);
    return rc;
}

/* The last work of a stream. Its next user may queue work at once. */
static enum kl_progress retire(struct kl_stream *stream, struct kl_work *work)
{
    (void)work;
    kl_failures_clear(&stream->failures);
    kl_store_relaxed(&stream->number, 0);
    kl_store_release(&stream->live, KL_STREAM_FREE);
    return KL_DONE;
}

void kl_stream_release(struct kl_stream *stream)
{
    kl_store_relaxed(&stream->number, 0);
    kl_store_relaxed(&stream->live, KL_STREAM_LEAVING);
    kl_fetch_and_acq_rel(&stream->flags, ~KOLO_STREAM_INLINE); /* no thread will wait for it: the executor runs it */
    kl_stream_push(stream, &(struct kl_work){.progress = retire});
}

static ncclResult_t make_default(int device, struct kl_stream **stream)
{
    lock_for_life();
    *stream = take_default(device);
    pthread_mutex_unlock(&registry.lock);
    return *stream ? ncclSuccess : KL_NOMEM("a default stream");
}

ncclResult_t kl_stream_default(int device, struct kl_stream **stream)
{
    KL_TRY(check_default(device));
    *stream = kl_load_acquire(&registry.defaults[device]); /* pairs with take_default */
    return *stream ? ncclSuccess : make_default(device, stream);
}

/* ---- running ---- */

/* Run the queue until there is a slot, or until there was no progress for milliseconds: then not again before the
 * head has moved. */
static bool run_for_slot(struct kl_stream *stream, uint64_t ticket)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    if (kl_load_relaxed(&stream->stuck) == kl_load_relaxed(&stream->head) + 1) return false;
    kl_stream_attend(stream);
    while (!has_slot(stream, ticket) && !wait.sleep_us) {
        if (kl_stream_run(stream) != KL_STALLED || kl_streams_poll(false) != KL_STALLED)
            kl_wait_reset(&wait);
        else
            kl_wait_pause(&wait, (enum kl_wait_cores)kl_load_relaxed(&stream->cores));
    }
    kl_stream_leave(stream);
    if (has_slot(stream, ticket)) return true;
    kl_store_relaxed(&stream->stuck, kl_load_relaxed(&stream->head) + 1);
    return false;
}

static __attribute__((noinline)) void push_into_full(struct kl_stream *stream, uint64_t ticket,
                                                     const struct kl_work *work)
{
    if (!run_for_slot(stream, ticket)) {
        if (kl_overflow_put(&stream->overflow, ticket, work)) {
            refill(stream); /* the slots may have moved on meanwhile, without another thread to refill them */
            return;
        }
        kl_stream_wait(stream, ticket - KL_STREAM_SLOTS + 1);
    }
    publish(stream, ticket, work);
}

uint64_t kl_stream_push(struct kl_stream *stream, const struct kl_work *work)
{
    uint64_t ticket = kl_fetch_add_relaxed(&stream->tail, 1);

    kl_store_relaxed(&stream->producer, thread_number());
    if (kl_load_relaxed(&stream->last_owner) != work->owner) {
        kl_store_relaxed(&stream->last_owner, work->owner);
        kl_store_relaxed(&stream->mixed, ticket);
    }
    if (has_slot(stream, ticket))
        publish(stream, ticket, work);
    else
        push_into_full(stream, ticket, work);
    if (!(kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE))
        kl_executor_notify(); /* otherwise the caller runs it at once */
    return ticket;
}

/* A waiter that is just falling asleep may be missed: it wakes up by itself soon. */
static void unpark(struct kl_stream *stream)
{
    kl_store_relaxed(&stream->parked, 0);
    kl_futex_wake(&stream->parked);
}

static enum kl_progress do_nothing(struct kl_stream *stream, struct kl_work *work)
{
    (void)stream, (void)work;
    return KL_DONE;
}

/* The work of a ticket, if it is in its slot. */
static struct kl_work *work_at(struct kl_stream *stream, uint64_t ticket)
{
    uint32_t slot = (uint32_t)(ticket % KL_STREAM_SLOTS);

    return kl_load_acquire(&stream->slots[slot].seq) == ticket + 1 /* pairs with the exchange in publish */
               ? &stream->slots[slot].work
               : NULL;
}

static enum kl_progress run_work(struct kl_stream *stream, uint64_t ticket, struct kl_work *work)
{
    stream->at = ticket;
    return work->progress(stream, work);
}

/* Run work behind the head, if the head may need it; finished work is not run again. False: the clique ends before
 * it. */
static bool run_behind(struct kl_stream *stream, uint64_t ticket, struct kl_work *w, const struct kl_work *head,
                       enum kl_progress *got)
{
    if (w->clique != head->clique) return false;
    if (w->owner == head->owner || w->progress == do_nothing) return true;
    enum kl_progress s = run_work(stream, ticket, w);
    if (s == KL_DONE) w->progress = do_nothing;
    if (s != KL_STALLED) *got = KL_MOVED;
    return true;
}

/* The same for overflowed work, which stays in its list. */
static void run_overflowed(struct kl_stream *stream, const struct kl_work *head, enum kl_progress *got)
{
    kl_overflow_lock(&stream->overflow);
    for (struct kl_overflow_work *w = stream->overflow.first; w && run_behind(stream, w->ticket, &w->work, head, got);)
        w = w->next;
    kl_overflow_unlock(&stream->overflow);
}

/* Run work behind the head that is in its clique, with other owners. */
static enum kl_progress run_clique(struct kl_stream *stream, uint64_t head, const struct kl_work *first)
{
    enum kl_progress got = KL_STALLED;
    struct kl_work *w;

    for (uint64_t t = head + 1; t < head + KL_STREAM_SLOTS && (w = work_at(stream, t)); t++)
        if (!run_behind(stream, t, w, first, &got)) return got;
    if (kl_load_relaxed(&stream->overflow.any)) run_overflowed(stream, first, &got);
    return got;
}

/* Wake resting threads, which may wait for this move. Not to miss a follower takes a sequentially consistent
 * exchange: idle.h. */
static void move_head(struct kl_stream *stream, uint64_t head)
{
    if (head <= kl_load_relaxed(&stream->followed)) {
        kl_swap_seq_cst(&stream->head, head);
        kl_idle_notify();
    } else {
        kl_store_release(&stream->head, head); /* pairs with kl_stream_reached */
        if (kl_load_relaxed(&kl_idle_resting)) kl_idle_wake();
    }
    if (kl_load_relaxed(&stream->parked)) unpark(stream);
}

/* Run work in order until it stalls or the queue is empty. The caller holds `running`. */
static enum kl_progress run_held(struct kl_stream *stream)
{
    enum kl_progress got = KL_STALLED;
    uint64_t head = kl_load_relaxed(&stream->head);

    for (;;) {
        struct kl_work *work = work_at(stream, head);
        if (!work) {
            if (head == kl_load_relaxed(&stream->tail)) return KL_DONE;
            if (!kl_load_relaxed(&stream->overflow.any) || !refill(stream)) return got;
            continue;
        }
        enum kl_progress s = run_work(stream, head, work);
        if (s == KL_STALLED && work->clique && kl_load_relaxed(&stream->mixed) > head)
            s = run_clique(stream, head, work);
        if (s != KL_DONE) return s == KL_MOVED ? s : got;
        move_head(stream, ++head);
        got = KL_MOVED;
    }
}

enum kl_progress kl_stream_run(struct kl_stream *stream)
{
    if (!kl_stream_acquire_run(stream)) return KL_STALLED;
    enum kl_progress got = run_held(stream);
    kl_stream_release_run(stream);
    return got;
}

enum kl_progress kl_streams_poll(bool all)
{
    uint32_t me = thread_number();
    enum kl_progress got = KL_STALLED;

    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        if (!kl_stream_pending(s) || (!all && kl_load_relaxed(&s->producer) != me)) continue;
        if (kl_stream_run(s) != KL_STALLED)
            got = KL_MOVED;
        else if (all)
            kl_idle_stalled();
    }
    return got;
}

/* ---- waiting ---- */

/* The leader stops leading: a sleeping waiter takes its place. */
static void hand_over(void)
{
    kl_store_release(&registry.leading, 0);
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        if (!kl_load_relaxed(&s->parked)) continue;
        unpark(s);
        return;
    }
}

/* Is an attempt worthwhile, before the phase of long sleeps? */
static bool may_sleep(const struct kl_poll_wait *wait)
{
    return wait->polls % POLLS_PER_REST == POLLS_PER_REST - 1;
}

/* The stream that this thread waits for, and those that it has pushed to. */
static bool run_own_streams(void *stream)
{
    uint32_t me = thread_number();
    bool moved = false;

    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        if (!kl_stream_pending(s) || (s != stream && kl_load_relaxed(&s->producer) != me)) continue;
        if (kl_stream_run(s) != KL_STALLED)
            moved = true;
        else
            kl_idle_stalled();
    }
    return moved;
}

static bool run_all(void *unused)
{
    (void)unused;
    return kl_streams_poll(true) != KL_STALLED;
}

/* Run all streams of the process until this one has reached the ticket. */
static void lead(struct kl_stream *stream, uint64_t ticket)
{
    struct kl_poll_wait wait = KL_WAIT_LONG;

    while (!kl_stream_reached(stream, ticket)) {
        bool sleeps = wait.sleep_us;
        bool moved = sleeps || may_sleep(&wait) ? kl_idle_rest(&wait, run_all, NULL) : run_all(NULL);
        if (moved)
            kl_wait_reset(&wait);
        else if (!sleeps)
            kl_wait_pause(&wait, (enum kl_wait_cores)kl_load_relaxed(&stream->cores));
    }
    hand_over();
}

static void wait_for_long(struct kl_stream *stream, uint64_t ticket)
{
    if (!kl_load_relaxed(&registry.leading) && !kl_swap_acquire(&registry.leading, 1)) {
        lead(stream, ticket);
        return;
    }
    kl_swap_seq_cst(&stream->parked, 1);
    kl_idle_notify(); /* the leader runs this stream from now on */
    if (!kl_stream_reached(stream, ticket)) kl_futex_wait(&stream->parked, 1, PARK_NS);
    kl_store_relaxed(&stream->parked, 0);
}

void kl_stream_attend(struct kl_stream *stream)
{
    kl_store_relaxed(&stream->waiter, 1);
}

void kl_stream_leave(struct kl_stream *stream)
{
    kl_store_relaxed(&stream->waiter, 0);
    if (!kl_stream_pending(stream) || kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE) return;
    kl_swap_seq_cst(&stream->waiter, 0); /* before kl_executor_notify looks */
    kl_executor_notify();
}

/* While the word says TAKEN no other thread runs the function, and the head does not move. */
bool kl_stream_run_offered(struct kl_stream *stream, uint64_t ticket)
{
    uint64_t head = kl_load_acquire(&stream->head), offered = kl_function_word(head, KL_FUNCTION_OFFERED);

    if (head >= ticket || kl_load_relaxed(&stream->function) != offered) return false;
    if (!kl_cas_acq_rel(&stream->function, &offered, kl_function_word(head, KL_FUNCTION_TAKEN))) return false;
    const struct kl_work *work = &stream->slots[head % KL_STREAM_SLOTS].work;
    ((kl_function)work->arg[KL_FUNCTION_FN])((void *)(uintptr_t)work->arg[KL_FUNCTION_ARG]);
    kl_swap_seq_cst(&stream->function, kl_function_word(head, KL_FUNCTION_ENDED)); /* before kl_idle_notify looks */
    kl_idle_notify();
    return true;
}

void kl_stream_wait(struct kl_stream *stream, uint64_t ticket)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    kl_stream_attend(stream);
    /* Streams of other threads matter only when a communicator is used on several streams: run them rarely. */
    while (!kl_stream_reached(stream, ticket)) {
        if (kl_stream_run(stream) != KL_STALLED || kl_stream_run_offered(stream, ticket) ||
            kl_streams_poll(wait.polls % 64 == 63) != KL_STALLED)
            kl_wait_reset(&wait);
        else if (wait.sleep_us)
            wait_for_long(stream, ticket);
        else if (may_sleep(&wait) && kl_idle_rest(&wait, run_own_streams, stream))
            kl_wait_reset(&wait);
        else
            kl_wait_pause(&wait, (enum kl_wait_cores)kl_load_relaxed(&stream->cores));
    }
    kl_stream_leave(stream);
}

ncclResult_t kl_stream_synchronize(struct kl_stream *stream, uint64_t ticket)
{
    uint64_t ended = kl_failures_ended(&stream->failures);

    kl_stream_wait(stream, ticket);
    return kl_failures_query(&stream->failures, ticket, ended);
}

ncclResult_t kl_stream_query(struct kl_stream *stream)
{
    uint64_t tail = kl_stream_tail(stream);

    if (!kl_stream_reached(stream, tail)) kl_stream_run(stream);
    KL_TRY(kl_stream_failure(stream, tail));
    return kl_stream_reached(stream, tail) ? ncclSuccess : ncclInProgress;
}

/* ---- withdrawing ---- */

static enum kl_progress stay(struct kl_stream *stream, struct kl_work *work)
{
    (void)stream, (void)work;
    return KL_STALLED;
}

enum { NOT_FOUND = -1 };

/* The caller holds `running`. A slot that another producer has drawn and not filled yet is skipped. */
static int64_t replace_held(struct kl_stream *stream, const void *owner, const struct kl_work *by)
{
    int64_t first = NOT_FOUND;

    for (uint64_t t = kl_load_relaxed(&stream->head); t != kl_load_relaxed(&stream->tail); t++) {
        struct kl_work *work = work_at(stream, t);
        if (!work || work->owner != owner) continue;
        *work = *by;
        if (first == NOT_FOUND) first = (int64_t)t;
    }
    return first;
}

/* The same for overflowed work, which is behind all the rest. */
static int64_t replace_overflowed(struct kl_stream *stream, const void *owner, const struct kl_work *by)
{
    int64_t first = NOT_FOUND;

    kl_overflow_lock(&stream->overflow);
    for (struct kl_overflow_work *w = stream->overflow.first; w; w = w->next) {
        if (w->work.owner != owner) continue;
        w->work = *by;
        if (first == NOT_FOUND) first = (int64_t)w->ticket;
    }
    kl_overflow_unlock(&stream->overflow);
    return first;
}

/* Replace all work of the owner by `by`; returns the ticket of the first. */
static int64_t replace(struct kl_stream *stream, const void *owner, const struct kl_work *by)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    while (kl_swap_acquire(&stream->running, 1)) kl_wait_pause(&wait, KL_CORES_SHARED);
    int64_t aside = replace_overflowed(stream, owner, by); /* first: it may get a slot at any time */
    int64_t first = replace_held(stream, owner, by);
    kl_store_release(&stream->running, 0); /* pairs with the exchange in the next runner */
    return first == NOT_FOUND ? aside : first;
}

void kl_streams_cancel_owner(void *owner, ncclResult_t code, const char *text, void (*settle)(void *owner))
{
    struct kl_work held_up = {.progress = stay, .owner = owner}, gone = {.progress = do_nothing};

    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        int64_t ticket = replace(s, owner, &held_up);
        if (ticket != NOT_FOUND) kl_failures_add(&s->failures, owner, (uint64_t)ticket, code, text);
    }
    settle(owner); /* no thread runs the work any more, and no waiter has continued yet */
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) replace(s, owner, &gone);
}

/* ---- failures ---- */

void kl_stream_fail(struct kl_stream *stream, const void *owner, ncclResult_t code, const char *text)
{
    kl_failures_add(&stream->failures, owner, stream->at, code, text);
}

ncclResult_t kl_stream_failure(struct kl_stream *stream, uint64_t ticket)
{
    return kl_failures_query(&stream->failures, ticket, kl_failures_ended(&stream->failures));
}

void kl_streams_forget_owner(const void *owner, bool tell)
{
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) kl_failures_end(&s->failures, owner, tell);
}
