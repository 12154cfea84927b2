/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace.h - the timed events of a communicator, for a picture: calls, operations, steps and waits (KOLO_TRACE).
 *
 * Each thread that writes has a ring of events of its own, of fixed size, so the last ones are kept: one for the
 * caller, one for the runner. When the communicator ends or fails, they are written as a file in Chrome's trace format
 * (trace_file.h).
 *
 * Costs:   off, one comparison where something would be recorded. On, the clock is read at both ends of everything: some 50 ns
 *          per event, 64 bytes each.
 * Memory order: fields are stored with release between two changes of the event's number, as in flight.h.
 * Threads: as above; kl_trace_read any.
 */
#ifndef KL_COMM_DIAGNOSIS_TRACE_H
#define KL_COMM_DIAGNOSIS_TRACE_H

#include "base/atomic.h"
#include "base/ticks.h"
#include "coll/pipeline/steps.h"
#include "coll/engine/task.h"

#include <stdalign.h>

enum kl_trace_kind { KL_TRACE_CALL, KL_TRACE_OP, KL_TRACE_WAIT, KL_TRACE_STEP };
enum kl_trace_writer { KL_TRACE_CALLER, KL_TRACE_RUNNER, KL_TRACE_WRITERS };

/** One timed event; fields that do not apply are 0, ranks -1. */
struct kl_trace_event {
    enum kl_trace_kind kind;
    int func, type, op, algorithm, proto, channels;
    int channel;         /* of a step */
    uint8_t way;         /* of an operation: kl_select_way */
    int from, to;        /* a step's ranks; `to` is also the rank waited for, the root, or the peer */
    uint64_t number;     /* of the operation, from 1 on; 0: not given yet (a group) */
    uint32_t collective; /* among the collectives, from 1 on; 0: none, or not given yet */
    uint64_t count;      /* elements; of a step bytes; of a wait kl_trace_pauses */
    uint64_t begin, end; /* ticks */
};

/** A wait that continues, or that another thread took over. */
#define KL_TRACE_PAUSES_UNKNOWN UINT64_MAX

/** Yields and sleeps of a thread in a wait; it spun the rest of the time. */
static inline uint64_t kl_trace_pauses(uint32_t yields, uint32_t sleeps)
{
    return (uint64_t)sleeps << 32 | yields;
}

/** The clock of rank 0, as this rank found it at init. */
struct kl_trace_clock {
    bool known;
    int64_t offset_ns; /* add this to our monotonic time to get rank 0's */
    uint64_t error_ns; /* bound of the error */
};

struct kl_trace;

/** With room for `events` of each writer, a power of two. Free with kl_trace_free. */
ncclResult_t kl_trace_create(size_t events, struct kl_trace **trace);
void kl_trace_free(struct kl_trace *trace);

void kl_trace_add(struct kl_trace *trace, enum kl_trace_writer writer, const struct kl_trace_event *event);

/** Events so far, and one of them; false: it was overwritten, or is just being written. */
uint64_t kl_trace_count(struct kl_trace *trace, enum kl_trace_writer writer);
size_t kl_trace_room(const struct kl_trace *trace);
bool kl_trace_read(struct kl_trace *trace, enum kl_trace_writer writer, uint64_t number, struct kl_trace_event *event);

/** The fields known from a task; the caller adds the times and the number. */
struct kl_trace_event kl_trace_task(enum kl_trace_kind kind, const struct kl_task *task);

#endif
