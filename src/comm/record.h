/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - record the next task of a communicator, which is in its place in the ring: as a call, and in the flight
 * record.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_RECORD_H
#define KL_COMM_RECORD_H

#include "comm/launch.h"
#include "device/host/user_stream.h"

static inline void kl_comm_record_collective(ncclComm_t comm, struct kl_task *t)
{
    const uint64_t number = kl_load_relaxed(&comm->collectives) + 1;

    t->number = number;
    const struct kl_call call = kl_call_of_task(t);
    struct kl_called_before *place = &comm->calls[number % KL_CALLS];

    t->signature = kl_call_signature(&call);
    kl_store_relaxed(&place->what, call.what);
    kl_store_relaxed(&place->count, call.count);
    kl_store_release(&comm->collectives, number); /* pairs with kl_inquest_answer */
}

/** At `now` (kl_ticks), for `stream`. */
static inline void kl_comm_record(ncclComm_t comm, const struct kl_stream *stream, uint64_t now)
{
    uint64_t number = kl_load_relaxed(&comm->tasks_taken);
    struct kl_task *t = kl_comm_task(comm, number);

    t->timeout_ns = comm->timeout_ns;
    if (!kl_func_is_message(t->func)) kl_comm_record_collective(comm, t);
    kl_flight_issue(comm->flight, number, t, kl_user_stream_handle(stream), now);
    kl_store_release(&comm->tasks_taken, number + 1); /* pairs with kl_rma_receive */
}

#endif
