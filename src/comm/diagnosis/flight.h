/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flight.h - the flight recorder of a communicator: its last operations, always recorded.
 *
 *     kl_flight_issue        the user's thread   the call, its plan and the time
 *     kl_flight_begin, _end  the runner          its turn has come, it is complete
 *     kl_flight_read         any thread          at any time, also in the middle of a failure
 *
 * Times:    an operation's issue is always timed; its begin when it is large or has to wait; its end when it is large or
 *           has waited for some hundred polls: reading the clock takes longer than all the rest.
 * Costs:    one reading of the clock per call or group, some 15 stores per operation: 75 instructions, 25 ns (EPYC,
 *           2026-11). No system call, lock or allocation.
 * Contents: a record is one line of 64 bytes. Its number is 0 while it is written: a reader checks it before and after.
 * Memory order: fields are stored with release behind the zero, and loaded with acquire before the second look at the number.
 *           An operation ends before its record is reused, but in groups of more than KL_FLIGHT_RECORDS operations: of those the
 *           last ones are kept.
 * Threads:  as above.
 */
#ifndef KL_COMM_DIAGNOSIS_FLIGHT_H
#define KL_COMM_DIAGNOSIS_FLIGHT_H

#include "base/atomic.h"
#include "base/ticks.h"
#include "coll/engine/task.h"

#include <stdalign.h>

enum { KL_FLIGHT_RECORDS = 1024 }; /* a power of two */

struct kl_flight_record {
    alignas(64) _Atomic uint64_t number; /* of the operation, from 1 on; 0: being written */
    _Atomic uint64_t
        what; /* bytes, low first: function, type, operator, algorithm, protocol, channels, way (kl_select_way) */
    _Atomic uint64_t who; /* root or peer; above it the number among the collectives */
    _Atomic uint64_t count, stream;
    _Atomic uint64_t issued, begun, ended; /* ticks; 0: not timed, or not yet */
};
_Static_assert(sizeof(struct kl_flight_record) == 64, "one line");

struct kl_flight {
    struct kl_flight_record record[KL_FLIGHT_RECORDS];

    /* the user's */
    alignas(KL_LINE) _Atomic uint64_t issued[KL_FUNC_ROWS]; /* operations, by function */
    _Atomic uint64_t collectives;                           /* number of the last one */

    /* the runner's */
    alignas(KL_LINE) _Atomic uint64_t begun, ended; /* operations so far */
    _Atomic uint64_t collectives_ended;
    _Atomic int32_t waits_for; /* a rank: the one that the runner waited for when it last looked; -1: none */
};

enum kl_flight_state { KL_FLIGHT_QUEUED, KL_FLIGHT_RUNNING, KL_FLIGHT_ENDED };

/** An operation as it was recorded; times are ticks, 0: not timed, or not yet. */
struct kl_flight_op {
    uint64_t number;     /* among the operations of the communicator, from 1 on */
    uint64_t collective; /* among its collectives, from 1 on; 0: a message */
    enum kl_flight_state state;
    int func, peer;
    ncclDataType_t type;
    unsigned op;                    /* kl_task_op_code */
    int algorithm, proto, channels; /* channels 0: no plan was chosen */
    uint8_t way;                    /* kl_select_way */
    uint64_t count, stream, issued, begun, ended;
};

/** Free it with kl_flight_free. */
ncclResult_t kl_flight_create(struct kl_flight **flight);
void kl_flight_free(struct kl_flight *flight);

/** False: the operation is not recorded any more, or not yet, or is just being recorded. */
bool kl_flight_read(struct kl_flight *flight, uint64_t number, struct kl_flight_op *op);

/** Operations issued so far. */
uint64_t kl_flight_issued(struct kl_flight *flight);

/* ---- on the path of every operation ---- */

static inline void kl_flight_count(_Atomic uint64_t *counter, uint64_t more)
{
    kl_store_relaxed(counter, kl_load_relaxed(counter) + more); /* one writer */
}

static inline struct kl_flight_record *kl_flight_record_of(struct kl_flight *f, uint64_t number)
{
    return &f->record[number & (KL_FLIGHT_RECORDS - 1)];
}

/** Task `number`, counted from 0, is queued on a stream, at `now` (kl_ticks). */
static inline void kl_flight_issue(struct kl_flight *f, uint64_t number, const struct kl_task *t, const void *stream,
                                   uint64_t now)
{
    struct kl_flight_record *r = kl_flight_record_of(f, number);
    const struct kl_choice *c = &t->choice;
    const uint64_t collective = kl_func_is_message(t->func) ? 0 : t->number;

    if (collective) kl_store_relaxed(&f->collectives, collective);
    kl_store_relaxed(&r->number, 0);
    kl_store_release(&r->what, (uint64_t)(uint8_t)t->func | (uint64_t)(uint8_t)t->type << 8 |
                                   (uint64_t)(uint8_t)kl_task_op_code(t) << 16 | (uint64_t)c->algorithm << 24 |
                                   (uint64_t)c->proto << 32 | (uint64_t)(uint8_t)c->partition.nchannels << 40);
    kl_store_release(&r->who, (uint32_t)t->peer | collective << 32);
    kl_store_release(&r->count, t->count);
    kl_store_release(&r->stream, (uint64_t)(uintptr_t)stream);
    kl_store_release(&r->begun, 0);
    kl_store_release(&r->ended, 0);
    kl_store_release(&r->issued, now);
    kl_store_release(&r->number, number + 1);
    kl_flight_count(&f->issued[t->func], 1);
}

/** Tasks before `end` have had their turn. Returns `end`. */
static inline uint64_t kl_flight_begin(struct kl_flight *f, uint64_t end)
{
    kl_store_relaxed(&f->begun, end);
    return end;
}

/** Tasks before `end` are complete; the last one is collective number `collective`, or 0: a message. */
static inline void kl_flight_end(struct kl_flight *f, uint64_t end, uint64_t collective)
{
    kl_store_relaxed(&f->ended, end);
    if (collective) kl_store_relaxed(&f->collectives_ended, collective);
}

/* ---- on the path of operations that wait, or are large ---- */

/** Record that tasks [first, end) began, or ended: now. */
void kl_flight_time_begin(struct kl_flight *flight, uint64_t first, uint64_t end);
void kl_flight_time_end(struct kl_flight *flight, uint64_t first, uint64_t end);

/** Task `number`, which ends, was done this way. */
void kl_flight_way(struct kl_flight *flight, uint64_t number, uint8_t way);

#endif
