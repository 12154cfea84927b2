/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream.h - host streams: ordered queues of resumable work, run by whoever waits for them.
 *
 * Work is a small record with a progress function that never blocks. It is queued by any thread (kl_stream_push) and
 * run by one thread at a time: the one that synchronises or queries (caller-run, the fast path), or the executor
 * (executor.h) when nobody has come for a while: 100 microseconds to some 2 milliseconds. A thread may leave a piece of work half done; the next
 * one continues it.
 *
 *     tail: tickets drawn by producers          slot: seq = ticket + 1 once its work may be run
 *     head: work finished, in order             running: held by the thread that runs the stream
 *
 * Invariant:    head <= tail; the slot of ticket t is t % KL_STREAM_SLOTS, free for t when head > t - KL_STREAM_SLOTS.
 * Costs:        a push is two atomic read-modify-writes on lines of the stream; no allocation, lock or system call,
 *               unless the queue is full (the caller then runs it) or the executor sleeps (it is woken, once).
 * Memory order: seq is published with a sequentially consistent exchange, read with acquire: the work is visible, and the
 *               executor's going to sleep is ordered against it. running is taken with acquire and given back with
 *               release: what one runner left half done is visible to the next. head is stored with release after the
 *               work, read with acquire by waiters: the results are visible.
 * Full:         the caller runs the queue as long as that moves, and else puts the work aside: a thread may queue much for one
 *               rank before it comes to what another rank needs to go on. A runner that gets there puts it into its slot.
 * Cliques:      ranks of one communicator may use one stream: what is behind the head in the queue, and of its clique, is run
 *               with it, because none of them could end alone.
 * Long waits:   of all threads of a process that wait for long, one leads: it runs everybody's streams, and rests (idle.h) when
 *               nothing moves. The others sleep until theirs has moved. So a process with a hundred ranks costs no more to wait in than one with a single rank.
 * Functions:    a piece of work may be a function of the program (function.h), which may block. No thread runs one but such as wait for
 *               this stream, and threads that are there for nothing else.
 * Threads:      any for push, run, wait; the streams live in a registry, their memory is reused but never freed, so that a
 *               thread may look at any of them at any time.
 * Fork:         a child has the same streams, empty and without failures; events recorded in them are done.
 * Source:       the slots are Vyukov's bounded MPMC queue with one consumer at a time.
 */
#ifndef KL_DEVICE_HOST_STREAM_H
#define KL_DEVICE_HOST_STREAM_H

#include "base/atomic.h"
#include "device/host/overflow.h"
#include "device/host/stream_failures.h"
#include "include/kolo.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#define KL_STREAM_SLOTS 256u

/** Flags of its own, beside those of koloStreamCreate: capture.h, legacy.h. */
enum { KL_STREAM_CAPTURING = 1 << 16, KL_STREAM_ORDERED = 1 << 17, KL_STREAM_IS_DEFAULT = 1 << 18 };

/** LEAVING: its handle names nothing any more, and its memory is reused when what is queued has run. */
enum kl_stream_life { KL_STREAM_FREE, KL_STREAM_LIVE, KL_STREAM_LEAVING };

/**
 * How far the function at the head is. OFFERED: whoever waits for the stream may run it, and a worker if nobody does. One that
 * the word does not name by its ticket has not been looked at.
 */
enum kl_function_state {
    KL_FUNCTION_NEW,
    KL_FUNCTION_OFFERED,
    KL_FUNCTION_TAKEN,
    KL_FUNCTION_ENDED,
    KL_FUNCTION_STATES
};

static inline uint64_t kl_function_word(uint64_t ticket, enum kl_function_state state)
{
    return ticket * KL_FUNCTION_STATES + state;
}

/** What a function is, in its work record. */
enum { KL_FUNCTION_FN, KL_FUNCTION_ARG };
typedef void (*kl_function)(void *arg);

struct kl_capture;

struct kl_stream {
    alignas(KL_LINE) _Atomic uint64_t tail;
    _Atomic uint32_t producer;  /* number of the thread that pushed last: whose work this probably is */
    _Atomic(void *) last_owner; /* of what was pushed last */
    _Atomic uint64_t mixed;     /* the last ticket whose owner is another than that before */
    _Atomic uint64_t stuck;     /* 1 + the head where nothing moved for long; 0: none */
    alignas(KL_LINE) _Atomic uint64_t head;
    _Atomic uint32_t running;
    _Atomic uint32_t parked;   /* a waiter sleeps until the head moves */
    _Atomic uint32_t waiter;   /* a hint: somebody waits here and runs the stream, the executor need not */
    _Atomic uint64_t followed; /* ticket up to which others wait for it: follow.h */
    uint64_t seen;             /* the executor's: head when it last looked */
    uint64_t at;               /* the runner's: ticket of the work that it runs */
    _Atomic uint64_t function; /* of the function at the head: its ticket and how far it is, see kl_function_word */
    uint32_t function_looks;   /* the runner's: at that function since it was offered */
    alignas(KL_LINE) _Atomic uint32_t live; /* enum kl_stream_life */
    _Atomic uint32_t cores;                 /* enum kl_wait_cores, of the ranks that use it */
    _Atomic uint32_t flags;                 /* KOLO_STREAM_*, constant while the stream lives, and KL_STREAM_* */
    _Atomic int device;                     /* constant while it lives */
    _Atomic uint64_t waits_for;             /* ticket up to which it waits for the default stream: legacy.h */
    _Atomic uint64_t waited_for;            /* ticket up to which the default stream waits for it */
    struct kl_capture *capture;             /* capture.h, under its lock, as the next */
    uint32_t lane;
    _Atomic uint32_t number; /* kl_stream_number */
    struct kl_stream *next;  /* in the registry; constant once published */
    struct kl_stream_failures failures;
    struct kl_overflow overflow;
    struct {
        alignas(64) _Atomic uint64_t seq;
        struct kl_work work;
    } slots[KL_STREAM_SLOTS];
};

/* ---- life ---- */

/** Of the current device, or of `device`. */
ncclResult_t kl_stream_create(unsigned flags, struct kl_stream **stream);
ncclResult_t kl_stream_create_on(int device, unsigned flags, struct kl_stream **stream);

/** The default stream of `device`, made at first use. Out of range: ncclInvalidArgument. */
ncclResult_t kl_stream_default(int device, struct kl_stream **stream);

/** Run what is queued, then give the stream back. Returns what failed of its work. */
ncclResult_t kl_stream_destroy(struct kl_stream *stream);

/** The same without waiting, and without a word about failures. */
void kl_stream_release(struct kl_stream *stream);

/** Another number for each stream that ever was: who keeps one sees whether it was destroyed meanwhile. */
static inline uint32_t kl_stream_number(const struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->number);
}

static inline int kl_stream_device(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->device);
}

static inline bool kl_stream_is_default(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->flags) & KL_STREAM_IS_DEFAULT;
}

/* ---- use ---- */

/** Queue a copy of `work`; returns its ticket. When the queue is full, runs it as long as it moves. */
uint64_t kl_stream_push(struct kl_stream *stream, const struct kl_work *work);

/** Run the stream if nobody else does. DONE: it is empty; MOVED: something happened; STALLED: not, or somebody else runs it. */
enum kl_progress kl_stream_run(struct kl_stream *stream);

/** If a function is offered, and its ticket is below `ticket`: run it here. */
bool kl_stream_take_function(struct kl_stream *stream, uint64_t ticket);

/** Run until everything up to `ticket` (exclusive) is finished, driving the process's other streams where they stand in the way. */
void kl_stream_wait(struct kl_stream *stream, uint64_t ticket);

/** Around polls by a thread that waits for some of the stream's work in its own way: a hint that the executor need not run it. */
void kl_stream_attend(struct kl_stream *stream);
void kl_stream_leave(struct kl_stream *stream);

/** As kl_stream_wait, and then what failed of that work (stream_failures.h), adopted as the calling thread's error text. */
ncclResult_t kl_stream_synchronize(struct kl_stream *stream, uint64_t ticket);

/** ncclInProgress, or what has become of the work so far: ncclSuccess or its failure. Runs the stream, once. */
ncclResult_t kl_stream_query(struct kl_stream *stream);

/** Whether everything up to `ticket` (exclusive) is finished. */
static inline bool kl_stream_reached(struct kl_stream *stream, uint64_t ticket)
{
    return kl_load_acquire(&stream->head) >= ticket; /* pairs with the release in finishing work */
}

/** The ticket that the next push will get. */
static inline uint64_t kl_stream_tail(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->tail);
}

/** Run the calling thread's streams, and with `all` those of other threads too, once each. MOVED or STALLED. */
enum kl_progress kl_streams_poll(bool all);

/**
 * Make all work of `owner` that is still queued do nothing, wherever it stands; it has failed (kl_stream_fail). `settle` is
 * called once nobody runs that work any more and before anybody who waits for it goes on. `owner` pushes nothing
 * meanwhile. Waits only for progress functions to return.
 */
void kl_streams_withdraw(void *owner, ncclResult_t code, const char *text, void (*settle)(void *owner));

/* ---- failures ---- */

/** From a progress function: work of `owner` failed, this and what is behind it. `text` lives as long as the owner. */
void kl_stream_fail(struct kl_stream *stream, const void *owner, ncclResult_t code, const char *text);

/** What has failed so far of the work before `ticket`, adopted as the calling thread's error text. */
ncclResult_t kl_stream_failure(struct kl_stream *stream, uint64_t ticket);

/** An owner that has nothing queued ends: streams do not report its failures any more, but see kl_failures_end on `tell`. */
void kl_streams_end_owner(const void *owner, bool tell);

/** The next stream of `device` that is in use, behind `stream`; NULL: the first one, or none is left. */
struct kl_stream *kl_streams_next_of(int device, struct kl_stream *stream);

/* ---- for the executor ---- */

struct kl_stream *kl_streams_first(void);

static inline bool kl_stream_pending(struct kl_stream *stream)
{
    return kl_load_acquire(&stream->head) != kl_load_relaxed(&stream->tail);
}

/** Is all that is queued of this owner? */
static inline bool kl_stream_is_of(struct kl_stream *stream, const void *owner)
{
    return kl_load_relaxed(&stream->last_owner) == owner &&
           kl_load_relaxed(&stream->mixed) <= kl_load_acquire(&stream->head);
}

/** The right to run the stream, from who holds it to the next runner. */
static inline void kl_stream_give_back(struct kl_stream *stream)
{
    kl_store_release(&stream->running, 0); /* pairs with the exchange in the next runner */
}

/** Take that right, if nobody has it. */
static inline bool kl_stream_take(struct kl_stream *stream)
{
    return !kl_load_relaxed(&stream->running) && !kl_swap_acquire(&stream->running, 1);
}

/**
 * For what may be done here and now instead of being pushed: take the right to run the stream, if it is empty. It is kept for a moment only,
 * and given back. False: something stands before, or somebody runs it.
 */
static inline bool kl_stream_take_idle(struct kl_stream *stream)
{
    if (kl_stream_pending(stream) || !kl_stream_take(stream)) return false;
    if (!kl_stream_pending(stream)) return true;
    kl_stream_give_back(stream);
    return false;
}

#endif
