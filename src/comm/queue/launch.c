/* SPDX-License-Identifier: Apache-2.0 */
/**
 * launch.c - streams and order: put launches on streams, and wait until they are finished.
 */
#include "comm/queue/launch.h"

#include "device/host/wait.h"
#include "os/thread.h"

/* ---- queueing ---- */

static void prepost(ncclComm_t comm, struct kl_stream *stream)
{
    if (!kl_stream_acquire_run(stream)) return;
    kl_prepost_post(comm);
    kl_stream_release_run(stream);
}

void kl_comm_launch(ncclComm_t comm, struct kl_stream *stream, uint32_t ntasks, uint32_t streams)
{
    struct kl_work work = {
        .progress = kl_comm_run_launch,
        .owner = comm,
        .clique = comm->shared,
        .arg = {[KL_ARG_LAUNCH] = comm->launched++,
                [KL_ARG_FIRST] = kl_load_relaxed(&comm->tasks_taken) - ntasks,
                [KL_ARG_COUNTS] = ntasks | (uint64_t)streams << 32},
    };

    if (streams) comm->large_until = kl_load_relaxed(&comm->tasks_taken);
    kl_store_relaxed(&stream->cores, comm->cores);
    const uint64_t ticket = kl_device_push(comm->devices, stream, &work);
    const bool follows = !streams && stream == comm->last_stream && ticket == comm->last_ticket;
    comm->last_stream = stream;
    comm->last_ticket = ticket + 1;
    kl_prepost_queued(&comm->prepost, work.arg[KL_ARG_FIRST], work.arg[KL_ARG_FIRST] + ntasks, follows);
    if (comm->prepost.suits && !(kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE)) prepost(comm, stream);
}

uint32_t kl_comm_launch_joins(ncclComm_t comm, const struct kl_queued *ops, size_t n,
                              const struct kl_stream *launch_stream)
{
    uint32_t joins = 0;

    for (size_t i = 0; i < n; i++) {
        struct kl_stream *s = ops[i].stream;
        size_t j = 0;
        if (s == launch_stream) continue;
        while (j < i && ops[j].stream != s) j++;
        if (j < i) continue;
        struct kl_work work = {.progress = kl_comm_join_launch, .owner = comm, .arg = {comm->launched}};
        kl_fetch_add_relaxed(&comm->joins_left, 1);
        kl_device_push(comm->devices, s, &work);
        joins++;
    }
    return joins;
}

void kl_comm_run_inline(ncclComm_t comm)
{
    struct kl_stream *s = comm->last_stream;

    if (!s || !(kl_load_relaxed(&s->flags) & KOLO_STREAM_INLINE) || kl_stream_reached(s, comm->last_ticket)) return;
    const void *before = kl_load_relaxed(&comm->waits_inline);
    kl_store_relaxed(&comm->waits_inline, kl_thread_self());
    kl_stream_wait(s, comm->last_ticket);
    kl_store_relaxed(&comm->waits_inline, before);
}

/* ---- waiting ---- */

static bool more_in_flight(ncclComm_t comm, uint64_t tasks, uint64_t launches)
{
    uint64_t taken = kl_load_relaxed(&comm->tasks_taken);

    return taken - kl_load_acquire(&comm->tasks_done) > tasks || /* pairs with finish_launch */
           comm->launched - kl_load_acquire(&comm->finished) > launches;
}

/* Poll all streams of the process; an abort cancels launches behind work that does not end. */
static void drive(ncclComm_t comm, struct kl_poll_wait *wait)
{
    if (kl_load_acquire(&comm->job.ended)) kl_comm_withdraw(comm);
    if (kl_streams_poll(true) == KL_STALLED)
        kl_wait_pause(wait, comm->cores);
    else
        kl_wait_reset(wait);
}

void kl_comm_wait_for_flight(ncclComm_t comm, uint64_t tasks, uint64_t launches)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    if (!more_in_flight(comm, tasks, launches)) return;
    kl_stream_attend(comm->last_stream);
    while (more_in_flight(comm, tasks, launches)) drive(comm, &wait);
    kl_stream_leave(comm->last_stream);
}

void kl_comm_quiesce(ncclComm_t comm)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    kl_comm_wait_for_flight(comm, 0, 0);
    while (kl_load_acquire(&comm->joins_left)) drive(comm, &wait); /* pairs with join_launch */
}

/* ---- taking back ---- */

static void revoke_memory(void *owner)
{
    ncclComm_t comm = owner;

    if (comm->connections) kl_connections_revoke(comm->connections);
    if (comm->rma) kl_rma_cancel(comm->rma);
    if (comm->settle_waits) comm->settle_waits(comm);
}

void kl_comm_withdraw(ncclComm_t comm)
{
    ncclResult_t rc = kl_comm_failure(comm);

    kl_streams_cancel_owner(comm, rc, kl_comm_failure_text(comm), revoke_memory);
    kl_store_relaxed(&comm->joins_left, 0);
    kl_store_release(&comm->tasks_done, comm->tasks_taken); /* pairs with kl_comm_wait_for_flight */
    kl_store_release(&comm->finished, comm->launched);
}
