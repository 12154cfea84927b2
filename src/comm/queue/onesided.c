/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/onesided.h"

#include "base/clock.h"
#include "device/host/capture.h"
#include "device/host/idle.h"
#include "device/host/legacy.h"

#include <inttypes.h>

/* For data that a departed rank sent, if its connection does not end; a guess. */
enum { ARRIVAL_MS = 5000 };

/* ---- running ---- */

static enum kl_progress end(ncclComm_t comm)
{
    kl_fetch_sub_acq_rel(&comm->joins_left, 1); /* the last access to the communicator */
    return KL_DONE;
}

static enum kl_progress fail(ncclComm_t comm, struct kl_stream *stream, struct kl_rma_op *op)
{
    kl_rma_op_withdraw(comm->rma, op);
    kl_stream_fail(stream, comm, kl_comm_failure(comm), kl_comm_failure_text(comm));
    return end(comm);
}

static const char *name_of(const struct kl_rma_op *op)
{
    return op->waits ? "ncclWaitSignal" : op->window ? "ncclPutSignal" : "ncclSignal";
}

/* A departed rank has completed its part before: its data may still arrive. */
static bool is_deserted(ncclComm_t comm, struct kl_rma_op *op, int peer, uint64_t now)
{
    uint64_t missing;

    if (peer == comm->rank || !kl_bootstrap_has_left(comm->bootstrap, peer)) return false;
    if (!op->left_since) op->left_since = now;
    if (op->waits && kl_rma_may_arrive(comm->rma, peer) && now - op->left_since < ARRIVAL_MS * 1000000ull) return false;
    return kl_rma_blocked_on(comm->rma, op, &missing) == peer;
}

/* Some signals, or a peer's data, do not come: because it has left, or the wait timed out. */
static ncclResult_t check_timeout(ncclComm_t comm, struct kl_rma_op *op)
{
    uint64_t missing, now = kl_now_ns();
    int peer = kl_rma_blocked_on(comm->rma, op, &missing);
    char who[128];

    if (!op->stalled_since) op->stalled_since = now;
    if (peer < 0) return ncclSuccess;
    kl_comm_describe(comm, peer, who, sizeof who);
    if (is_deserted(comm, op, peer, now))
        return KL_FAIL(ncclRemoteError, "%s: %s destroyed its communicator before %s", name_of(op), who,
                       op->waits ? "all its signals had come" : "it was done");
    if (!op->timeout_ns || now - op->stalled_since < op->timeout_ns) return ncclSuccess;
    if (!op->waits)
        return KL_FAIL(ncclRemoteError, "%s at rank %d: nothing moved for %" PRIu64 " ms, waiting for %s", name_of(op),
                       comm->rank, op->timeout_ns / 1000000u, who);
    return KL_FAIL(ncclRemoteError, "%s at rank %d: no signal for %" PRIu64 " ms, waiting for %" PRIu64 " of %s",
                   name_of(op), comm->rank, op->timeout_ns / 1000000u, missing, who);
}

/* A waiting rank moves the data that others put here; that is not this operation's own progress. */
static enum kl_progress stall(ncclComm_t comm, struct kl_rma_op *op, ncclResult_t *rc)
{
    enum kl_progress helped = kl_rma_receive_some(comm->rma);

    *rc = check_timeout(comm, op);
    if (!*rc && helped == KL_STALLED && kl_idle_arming() && kl_rma_sleep_on(comm->rma, op)) kl_idle_registered();
    return helped;
}

static enum kl_progress run(struct kl_stream *stream, struct kl_work *work)
{
    ncclComm_t comm = work->owner;
    struct kl_rma_op *op = (struct kl_rma_op *)(uintptr_t)work->arg[0];
    ncclResult_t rc = ncclSuccess;
    uint64_t missing;

    if (kl_load_acquire(&comm->failed)) return fail(comm, stream, op);
    enum kl_progress got = kl_rma_progress(comm->rma, op, &rc);
    if (!rc && got == KL_STALLED)
        got = stall(comm, op, &rc);
    else
        op->stalled_since = op->left_since = 0;
    if (rc) {
        int peer = kl_rma_blocked_on(comm->rma, op, &missing);
        kl_comm_fail(comm, peer < 0 ? comm->rank : peer, rc, kl_error_text(), true);
        return fail(comm, stream, op);
    }
    if (got != KL_DONE) return got;
    kl_rma_op_free(op);
    return end(comm);
}

/* ---- launching ---- */

static void launch(ncclComm_t comm, struct kl_rma_op *op)
{
    struct kl_work work = {.progress = run, .owner = comm, .clique = comm->shared, .arg = {(uintptr_t)op}};
    struct kl_stream *stream = op->stream;

    kl_rma_op_reserve_signals(comm->rma, op);
    kl_fetch_add_relaxed(&comm->joins_left, 1);
    kl_store_relaxed(&stream->cores, comm->cores);
    comm->last_stream = stream;
    comm->last_ticket = kl_device_push(comm->devices, stream, &work) + 1;
}

static ncclResult_t put_in_order(struct kl_stream *stream, const char *function)
{
    return kl_capturing(stream) ? kl_capture_refuse_unsupported(stream, function) : kl_legacy_order(stream);
}

static ncclResult_t launch_now(ncclComm_t comm, struct kl_rma_op *op)
{
    ncclResult_t rc = put_in_order(op->stream, name_of(op));

    if (rc) {
        kl_rma_op_free(op);
        return rc;
    }
    launch(comm, op);
    kl_comm_run_inline(comm);
    return ncclSuccess;
}

static ncclResult_t launch_or_queue(ncclComm_t comm, struct kl_rma_op *op)
{
    struct kl_onesided *q = &comm->onesided[comm->nqueued ? KL_ONESIDED_AFTER : KL_ONESIDED_BEFORE];

    if (!kl_load_relaxed(&comm->in_group)) return launch_now(comm, op);
    if (q->first)
        q->last->next = op;
    else
        q->first = op;
    q->last = op;
    return ncclSuccess;
}

ncclResult_t kl_comm_check_onesided(ncclComm_t comm)
{
    for (int turn = 0; turn < KL_ONESIDED_ORDERS; turn++)
        for (struct kl_rma_op *op = comm->onesided[turn].first; op; op = op->next) {
            if (kl_stream_number(op->stream) != op->stream_number)
                return KL_FAIL(ncclInvalidUsage,
                               "rank %d: the stream of %s was destroyed between ncclGroupStart and ncclGroupEnd",
                               comm->rank, name_of(op));
            KL_TRY(put_in_order(op->stream, name_of(op)));
        }
    return ncclSuccess;
}

/* The first of a queue that is being emptied. */
static struct kl_rma_op *next_of(struct kl_onesided *q)
{
    struct kl_rma_op *op = q->first;

    if (op) q->first = op->next;
    return op;
}

void kl_comm_launch_onesided(ncclComm_t comm, enum kl_onesided_order turn)
{
    for (struct kl_rma_op *op; (op = next_of(&comm->onesided[turn]));) launch(comm, op);
}

void kl_comm_drop_onesided(ncclComm_t comm)
{
    for (int turn = 0; turn < KL_ONESIDED_ORDERS; turn++)
        for (struct kl_rma_op *op; (op = next_of(&comm->onesided[turn]));) kl_rma_op_free(op);
}

/* ---- calls ---- */

static ncclResult_t take(ncclComm_t comm, struct kl_stream *stream, struct kl_rma_op **out)
{
    struct kl_rma_op *op = kl_rma_op_alloc(comm->rma);

    if (!op) return KL_NOMEM("a one-sided operation");
    op->stream = stream;
    op->stream_number = kl_stream_number(stream);
    op->timeout_ns = comm->timeout_ns;
    *out = op;
    return ncclSuccess;
}

static int signals_of(const struct ncclComm *comm)
{
    return kl_nccl_config_or(comm->nccl_config.rma_signals, KL_RMA_SIGNALS);
}

static ncclResult_t check_counter(ncclComm_t comm, const char *function, int peer, int context, int signal)
{
    const int contexts = kl_nccl_config_or(comm->nccl_config.rma_contexts, 1), signals = signals_of(comm);

    if (!comm->rma)
        return KL_FAIL(ncclInvalidUsage, "%s: no window was registered yet; signals come with the first one", function);
    if (peer < 0 || peer >= comm->nranks)
        return KL_FAIL(ncclInvalidArgument, "%s: rank %d, the communicator has ranks 0 to %d", function, peer,
                       comm->nranks - 1);
    if (context < 0 || context >= contexts)
        return KL_FAIL(ncclInvalidArgument, "%s: context %d, there are 0 to %d (numRmaCtx of the configuration)",
                       function, context, contexts - 1);
    if (signal < 0 || signal >= signals)
        return KL_FAIL(ncclInvalidArgument, "%s: signal %d, there are 0 to %d (numRmaSig of the configuration)",
                       function, signal, signals - 1);
    return ncclSuccess;
}

static ncclResult_t check_range(const struct kl_put *p, const struct kl_rma_window *window)
{
    size_t room = kl_rma_bytes(window, p->peer);

    if (!p->data && p->bytes) return KL_FAIL(ncclInvalidArgument, "%s: the buffer is NULL", p->function);
    if (p->offset <= room && p->bytes <= room - p->offset) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s: %zu bytes at offset %zu, the window of rank %d has %zu", p->function,
                   p->bytes, p->offset, p->peer, room);
}

ncclResult_t kl_comm_put(ncclComm_t comm, const struct kl_put *p, struct kl_stream *stream)
{
    struct kl_rma_window *window = NULL;

    KL_TRY(check_counter(comm, p->function, p->peer, p->context, p->signal));
    if (p->window) {
        window = kl_rma_find(comm->rma, (uintptr_t)p->window);
        if (!window)
            return KL_FAIL(ncclInvalidArgument, "%s: %p is no window of this communicator", p->function,
                           (void *)p->window);
        KL_TRY(check_range(p, window));
    }
    struct kl_rma_op *op;
    KL_TRY(take(comm, stream, &op));
    op->peer = p->peer;
    if (window) kl_rma_op_set_window(op, window);
    op->offset = p->offset;
    op->bytes = p->bytes;
    op->data = p->data;
    op->counter = kl_rma_counter(signals_of(comm), p->context, p->signal);
    kl_rma_op_set_source(comm->rma, op);
    return launch_or_queue(comm, op);
}

static ncclResult_t check_wanted(ncclComm_t comm, const ncclWaitSignalDesc_t *wanted, int n)
{
    for (int i = 0; i < n; i++) {
        KL_TRY(check_counter(comm, "ncclWaitSignal", wanted[i].peer, wanted[i].ctx, wanted[i].sigIdx));
        if (wanted[i].opCnt < 0)
            return KL_FAIL(ncclInvalidArgument, "ncclWaitSignal: opCnt %d of descriptor %d is negative",
                           wanted[i].opCnt, i);
    }
    return ncclSuccess;
}

/* As many signals as one operation waits for. */
static ncclResult_t await_some(ncclComm_t comm, const ncclWaitSignalDesc_t *wanted, int n, struct kl_stream *stream)
{
    struct kl_rma_op *op;

    KL_TRY(take(comm, stream, &op));
    op->waits = true;
    op->nwaits = n;
    for (int i = 0; i < n; i++) {
        op->wait[i].peer = wanted[i].peer;
        op->wait[i].counter = kl_rma_counter(signals_of(comm), wanted[i].ctx, wanted[i].sigIdx);
        op->wait[i].count = wanted[i].opCnt;
    }
    return launch_or_queue(comm, op);
}

ncclResult_t kl_comm_await_signals(ncclComm_t comm, const ncclWaitSignalDesc_t *wanted, int n, struct kl_stream *stream)
{
    KL_TRY(check_wanted(comm, wanted, n));
    for (int i = 0; i < n; i += KL_RMA_WAITS)
        KL_TRY(await_some(comm, wanted + i, n - i < KL_RMA_WAITS ? n - i : KL_RMA_WAITS, stream));
    return ncclSuccess;
}
