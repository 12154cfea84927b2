/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/captured.h"

#include "comm/job.h"
#include "comm/onesided.h"
#include "device/host/capture.h"
#include "device/host/legacy.h"
#include "device/host/refuse.h"

#include <stdlib.h>

/* Operations of one launch. */
struct captured {
    ncclComm_t handle;
    size_t n;
    struct kl_queued *op;    /* their streams are written at each launch */
    uint32_t *lane;          /* of each */
    struct kl_redop *redop;  /* of those that are not built-in: the program may destroy its own meanwhile */
    struct kl_stream **used; /* while it is captured */
};

/* ---- a node ---- */

static void free_captured(void *data)
{
    struct captured *c = data;

    free(c->op);
    free(c->lane);
    free(c->redop);
    free(c->used);
    free(c);
}

static ncclResult_t check_comm(struct ncclComm *comm, size_t n)
{
    KL_TRY(kl_comm_failure(comm));
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "koloGraphLaunch: the communicator of rank %d was finalized", comm->rank);
    return kl_comm_reserve(comm, n);
}

static ncclResult_t check(void *data)
{
    const struct captured *c = data;
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(c->handle, "koloGraphLaunch", &comm));
    ncclResult_t rc = check_comm(comm, c->n);
    kl_handle_leave(comm);
    return rc;
}

static ncclResult_t launch(void *data, struct kl_stream *const *lanes)
{
    struct captured *c = data;
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(c->handle, "koloGraphLaunch", &comm));
    for (size_t i = 0; i < c->n; i++) c->op[i].stream = lanes[c->lane[i]];
    ncclResult_t rc = kl_comm_make_room(comm, c->n);
    if (!rc) kl_comm_launch_together(comm, c->op, c->n);
    kl_handle_leave(comm);
    return rc;
}

/* A collective without elements does nothing but count, when it is launched, as everybody's does. */
static ncclResult_t count(void *data, struct kl_stream *const *lanes)
{
    struct captured *c = data;
    struct ncclComm *comm;

    (void)lanes;
    KL_TRY(kl_comm_enter(c->handle, "koloGraphLaunch", &comm));
    ncclResult_t rc = kl_comm_count_empty(comm, &c->op[0].task);
    kl_handle_leave(comm);
    return rc;
}

static bool alike(const void *data, const void *other)
{
    const struct captured *a = data, *b = other;

    if (a->handle != b->handle || a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->op[i].task.func != b->op[i].task.func || a->lane[i] != b->lane[i]) return false;
    return true;
}

static const struct kl_recorded_kind operations = {
    .check = check,
    .launch = launch,
    .alike = alike,
    .free = free_captured,
};

static const struct kl_recorded_kind empty_operation = {
    .check = check,
    .launch = count,
    .alike = alike,
    .free = free_captured,
};

/* ---- capturing ---- */

static struct captured *allocate(size_t n)
{
    struct captured *c = calloc(1, sizeof *c);

    if (!c) return NULL;
    c->n = n;
    c->op = calloc(n, sizeof *c->op);
    c->lane = calloc(n, sizeof *c->lane);
    c->redop = calloc(n, sizeof *c->redop);
    c->used = calloc(n, sizeof(struct kl_stream *));
    if (c->op && c->lane && c->redop && c->used) return c;
    free_captured(c);
    return NULL;
}

static ncclResult_t check_usage(ncclComm_t comm, struct kl_stream *stream)
{
    if (comm->wish.graph_usage) return ncclSuccess;
    kl_capture_invalidate(stream);
    return KL_REFUSE(koloReasonCaptureUnsupported,
                     "the communicator of rank %d was made for no graphs (graphUsageMode 0), and a stream captures",
                     comm->rank);
}

static ncclResult_t capture(ncclComm_t comm, const struct kl_queued *ops, size_t n, const struct kl_recorded_kind *kind)
{
    KL_TRY(check_usage(comm, ops[0].stream));
    struct captured *c = allocate(n);
    if (!c) return KL_NOMEM("captured operations");
    c->handle = comm->handle;
    for (size_t i = 0; i < n; i++) {
        c->op[i] = ops[i];
        c->used[i] = ops[i].stream;
        if (!ops[i].task.redop) continue;
        c->redop[i] = *ops[i].task.redop;
        c->op[i].task.redop = &c->redop[i];
    }
    ncclResult_t rc = kl_capture_other(c->used, n, kind, c, c->lane);
    if (rc) free_captured(c);
    return rc;
}

ncclResult_t kl_captured_op(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream, bool *captured)
{
    struct kl_queued op = {.task = *task, .stream = stream};

    *captured = kl_capturing(stream);
    return *captured ? capture(comm, &op, 1, &operations) : kl_legacy_order(stream);
}

ncclResult_t kl_captured_empty(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream)
{
    struct kl_queued op = {.task = *task, .stream = stream};

    return capture(comm, &op, 1, &empty_operation);
}

/* ---- groups ---- */

/* Is any stream of the group one of those? That is asked of every group. */
static uint32_t flags_of(ncclComm_t comms)
{
    uint32_t flags = 0;

    for (ncclComm_t c = comms; c; c = c->group_next)
        for (size_t i = 0; i < c->nqueued; i++) flags |= kl_load_relaxed(&c->queued[i].stream->flags);
    return flags;
}

static ncclResult_t put_in_order(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next)
        for (size_t i = 0; i < c->nqueued; i++) KL_TRY(kl_legacy_order(c->queued[i].stream));
    return ncclSuccess;
}

/* Each stream is of the same capture as the first one, and each communicator may be in it. */
static ncclResult_t check_all(ncclComm_t comms)
{
    struct kl_stream *first = NULL;

    for (ncclComm_t c = comms; c; c = c->group_next)
        for (size_t i = 0; i < c->nqueued; i++) {
            if (!first) first = c->queued[i].stream;
            KL_TRY(kl_capture_same(first, c->queued[i].stream));
        }
    for (ncclComm_t c = comms; c; c = c->group_next) {
        if (kl_comm_has_onesided(c)) return kl_capture_refuse_unsupported(first, "a one-sided operation of the group");
        if (c->nqueued) KL_TRY(check_usage(c, first));
    }
    return ncclSuccess;
}

/* As a whole or not: a graph with some of the operations cannot be had. */
static ncclResult_t capture_all(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next) {
        ncclResult_t rc = c->nqueued ? capture(c, c->queued, c->nqueued, &operations) : ncclSuccess;
        if (rc) kl_capture_invalidate(c->queued[0].stream);
        if (rc) return rc;
    }
    return ncclSuccess;
}

ncclResult_t kl_captured_group(ncclComm_t comms, bool *captured)
{
    uint32_t flags = flags_of(comms);

    *captured = flags & KL_STREAM_CAPTURING;
    if (flags & KL_STREAM_CAPTURING) {
        KL_TRY(check_all(comms));
        return capture_all(comms);
    }
    return flags & KL_STREAM_ORDERED ? put_in_order(comms) : ncclSuccess;
}
