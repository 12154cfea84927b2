/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream.h - host streams: ordered queues of resumable work, run by the threads that wait for them.
 *
 * Work is a small record with a progress function that never blocks. It is queued by any thread (kl_stream_push) and
 * run by one thread at a time: one that synchronises or queries (the fast path), or the executor (executor.h) if none
 * has for 100 microseconds to some 2 milliseconds. A thread may leave a piece of work half done; the next one continues
 * it.
 *
 *     tail: tickets drawn by producers          slot: seq = ticket + 1 once its work may be run
 *     head: work finished, in order             running: held by the thread that runs the stream
 *
 * Invariant:    head <= tail; the slot of ticket t is t % KL_STREAM_SLOTS, free for t when head > t - KL_STREAM_SLOTS.
 * Costs:        a push is two atomic read-modify-writes on lines of the stream; no allocation, lock or system call,
 *               unless the queue is full or the executor sleeps (it is woken, once).
 * Memory order: seq is published with a sequentially consistent exchange, which also orders it against the executor's
 *               going to sleep, and read with acquire. running is taken with acquire and released by the runner:
 *               half-done work is visible to the next one. head is stored with release, read with acquire by waiters:
 *               results are visible.
 * Full:         the caller runs the queue as long as that progresses, and else puts the work into the overflow list: a
 *               thread may queue much for one rank before it queues work that another rank waits for.
 * Cliques:      ranks of one communicator may use one stream: queued work of the head's clique is run with it, because
 *               none of them could finish alone.
 * Long waits:   of all threads of a process that wait for long, one leads: it runs all streams, and rests (idle.h)
 *               without progress. The others sleep until their streams have moved.
 * Functions:    work may be a function of the program (function.h), which may block. Only threads that wait for this
 *               stream, and workers, run it.
 * Threads:      any for push, run, wait; streams live in a registry, their memory is reused but never freed.
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

/** Internal flags, in addition to those of koloStreamCreate: capture.h, legacy.h. */
enum {
    KL_STREAM_CAPTURING = 1 << 16,
    KL_STREAM_ORDERED = 1 << 17,
    KL_STREAM_IS_DEFAULT = 1 << 18,
    KL_STREAM_IS_INTERNAL = 1 << 19, /* no program's: koloDeviceSynchronize does not wait for it */
};

/** LEAVING: its handle is invalid, and its memory is reused when all queued work has run. */
enum kl_stream_life { KL_STREAM_FREE, KL_STREAM_LIVE, KL_STREAM_LEAVING };

/**
 * State of the function at the head. OFFERED: a thread that waits for the stream may run it, and otherwise a worker. If
 * the word has another ticket, the function has not been looked at.
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

/** Arguments of a function, in its work record. */
enum { KL_FUNCTION_FN, KL_FUNCTION_ARG };
typedef void (*kl_function)(void *arg);

struct kl_capture;

struct kl_stream {
    alignas(KL_LINE) _Atomic uint64_t tail;
    _Atomic uint32_t producer;  /* number of the thread that pushed last, which probably waits for the work */
    _Atomic(void *) last_owner; /* owner of the last push */
    _Atomic uint64_t mixed;     /* the last ticket whose owner differs from that of the previous one */
    _Atomic uint64_t stuck;     /* 1 + the head at which there was no progress for long; 0: none */
    alignas(KL_LINE) _Atomic uint64_t head;
    _Atomic uint32_t running;
    _Atomic uint32_t parked;                /* a waiter sleeps until the head moves */
    _Atomic uint32_t waiter;                /* a hint: a thread waits here and runs the stream, the executor need not */
    _Atomic uint64_t followed;              /* the largest ticket that other streams wait for: stream_order.h */
    uint64_t seen;                          /* used by the executor: head at its last look */
    uint64_t at;                            /* used by the runner: ticket of the work that it runs */
    _Atomic uint64_t function;              /* ticket and state of the function at the head, see kl_function_word */
    uint32_t function_looks;                /* used by the runner: looks at that function since it was offered */
    alignas(KL_LINE) _Atomic uint32_t live; /* enum kl_stream_life */
    _Atomic uint32_t cores;                 /* enum kl_wait_cores of the ranks that use it */
    _Atomic uint32_t flags;                 /* KOLO_STREAM_*, constant while the stream lives, and KL_STREAM_* */
    _Atomic int device;                     /* constant while it lives */
    _Atomic uint64_t waits_for;             /* ticket up to which it waits for the default stream: legacy.h */
    _Atomic uint64_t waited_for;            /* ticket up to which the default stream waits for it */
    struct kl_capture *capture;             /* capture.h, under its lock, as the next field */
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

/** Run queued work, then free the stream. Returns the first failure of its work. */
ncclResult_t kl_stream_destroy(struct kl_stream *stream);

/** The same without waiting, and without reporting failures. */
void kl_stream_release(struct kl_stream *stream);

/** Unique among all streams ever made: a stored number tells whether the stream was destroyed meanwhile. */
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

/** Queue a copy of `work`; returns its ticket. When the queue is full, runs it as long as it progresses. */
uint64_t kl_stream_push(struct kl_stream *stream, const struct kl_work *work);

/**
 * Run the stream if no other thread does. DONE: it is empty; MOVED: progress; STALLED: none, or another thread runs it.
 */
enum kl_progress kl_stream_run(struct kl_stream *stream);

/** If a function is offered, and its ticket is below `ticket`: run it here. */
bool kl_stream_run_offered(struct kl_stream *stream, uint64_t ticket);

/**
 * Run until all work up to `ticket` (exclusive) is finished, and the process's other streams if it depends on them.
 */
void kl_stream_wait(struct kl_stream *stream, uint64_t ticket);

/**
 * Around polls by a thread that waits for some of the stream's work by other means: a hint that the executor need not
 * run it.
 */
void kl_stream_attend(struct kl_stream *stream);
void kl_stream_leave(struct kl_stream *stream);

/**
 * As kl_stream_wait; returns the failure of that work (stream_failures.h), adopted as the calling thread's error text.
 */
ncclResult_t kl_stream_synchronize(struct kl_stream *stream, uint64_t ticket);

/** ncclInProgress, or the result of the work so far: ncclSuccess or its failure. Runs the stream, once. */
ncclResult_t kl_stream_query(struct kl_stream *stream);

/** Whether all work up to `ticket` (exclusive) is finished. */
static inline bool kl_stream_reached(struct kl_stream *stream, uint64_t ticket)
{
    return kl_load_acquire(&stream->head) >= ticket; /* pairs with the release in finishing work */
}

/** The ticket that the next push will get. */
static inline uint64_t kl_stream_tail(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->tail);
}

/** Run the calling thread's streams, and with `all` other threads' too, once each. MOVED or STALLED. */
enum kl_progress kl_streams_poll(bool all);

/**
 * Turn all queued work of `owner` into no-ops, in all streams; it has failed (kl_stream_fail). `settle` is called once
 * no thread runs that work any more and before any waiter continues. `owner` must not push meanwhile. Waits only for
 * progress functions to return.
 */
void kl_streams_cancel_owner(void *owner, ncclResult_t code, const char *text, void (*settle)(void *owner));

/* ---- failures ---- */

/**
 * From a progress function: this work of `owner`, and its work behind it, has failed. `text` lives as long as the
 * owner.
 */
void kl_stream_fail(struct kl_stream *stream, const void *owner, ncclResult_t code, const char *text);

/** The failure of the work before `ticket`, adopted as the calling thread's error text. */
ncclResult_t kl_stream_failure(struct kl_stream *stream, uint64_t ticket);

/** An owner without queued work ends: streams no longer report its failures; for `tell` see kl_failures_end. */
void kl_streams_forget_owner(const void *owner, bool tell);

/** The next stream of `device` that is in use, after `stream`; NULL: the first one, or none is left. */
struct kl_stream *kl_streams_next_of(int device, struct kl_stream *stream);

/* ---- for the executor ---- */

struct kl_stream *kl_streams_first(void);

static inline bool kl_stream_pending(struct kl_stream *stream)
{
    return kl_load_acquire(&stream->head) != kl_load_relaxed(&stream->tail);
}

/** Is all queued work this owner's? */
static inline bool kl_stream_is_of(struct kl_stream *stream, const void *owner)
{
    return kl_load_relaxed(&stream->last_owner) == owner &&
           kl_load_relaxed(&stream->mixed) <= kl_load_acquire(&stream->head);
}

/** Release the right to run the stream. */
static inline void kl_stream_release_run(struct kl_stream *stream)
{
    kl_store_release(&stream->running, 0); /* pairs with the exchange in the next runner */
}

/** Acquire the right to run the stream, if it is free. */
static inline bool kl_stream_acquire_run(struct kl_stream *stream)
{
    return !kl_load_relaxed(&stream->running) && !kl_swap_acquire(&stream->running, 1);
}

/**
 * For work that is done at once instead of being pushed: acquire the right to run the stream, if it is empty. To be
 * held for a moment only, then given back. False: it is not empty, or another thread runs it.
 */
static inline bool kl_stream_acquire_if_idle(struct kl_stream *stream)
{
    if (kl_stream_pending(stream) || !kl_stream_acquire_run(stream)) return false;
    if (!kl_stream_pending(stream)) return true;
    kl_stream_release_run(stream);
    return false;
}

#endif
