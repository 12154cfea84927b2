/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/captured.h"

#include "comm/job.h"
#include "comm/queue/onesided.h"
#include "device/host/capture.h"
#include "device/host/legacy.h"
#include "device/host/refuse.h"

#include <stdlib.h>

/* Operations of one launch. */
struct captured {
    ncclComm_t handle;
    size_t n;
    struct kl_queued *op;    /* their streams are set at each launch */
    uint32_t *lane;          /* of each */
    struct kl_redop *redop;  /* of operations that are not built-in: the program may destroy its own meanwhile */
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

static ncclResult_t check_comm(struct ncclComm *comm)
{
    KL_TRY(kl_comm_failure(comm));
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "koloGraphLaunch: the communicator of rank %d was finalized", comm->rank);
    return ncclSuccess;
}

static ncclResult_t check(void *data)
{
    const struct captured *c = data;
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(c->handle, "koloGraphLaunch", &comm));
    ncclResult_t rc = check_comm(comm);
    kl_handle_leave(comm);
    return rc;
}

static ncclResult_t launch(void *data, struct kl_stream *const *lanes)
{
    struct captured *c = data;
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter_as_issuer(c->handle, "koloGraphLaunch", &comm));
    for (size_t i = 0; i < c->n; i++) c->op[i].stream = lanes[c->lane[i]];
    ncclResult_t rc = kl_comm_make_room(comm, c->n);
    if (!rc) kl_comm_launch_together(comm, c->op, c->n, false);
    kl_handle_leave_as_issuer(comm);
    return rc;
}

/* A collective without elements only counts, when it is launched, as on every rank. */
static ncclResult_t count(void *data, struct kl_stream *const *lanes)
{
    struct captured *c = data;
    struct ncclComm *comm;

    (void)lanes;
    KL_TRY(kl_comm_enter_as_issuer(c->handle, "koloGraphLaunch", &comm));
    ncclResult_t rc = kl_comm_record_empty(comm, &c->op[0].task);
    kl_handle_leave_as_issuer(comm);
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
    if (comm->nccl_config.graph_usage) return ncclSuccess;
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
        c->op[i].call = (struct kl_profile_call){.event = NULL}; /* replays have no call */
        c->used[i] = ops[i].stream;
        if (!ops[i].task.redop) continue;
        c->redop[i] = *ops[i].task.redop;
        c->op[i].task.redop = &c->redop[i];
    }
    kl_exec_freeze(comm->exec);
    ncclResult_t rc = kl_capture_node(c->used, n, kind, c, c->lane);
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

/* Does any stream of the group capture? Checked for every group. */
static uint32_t flags_of(ncclComm_t comms)
{
    uint32_t flags = 0;

    for (ncclComm_t c = comms; c; c = c->group_next) {
        const size_t n = kl_comm_queued_streams(c);
        for (size_t i = 0; i < n; i++) flags |= kl_load_relaxed(&c->queued[i].stream->flags);
    }
    return flags;
}

static ncclResult_t put_in_order(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next)
        for (size_t i = 0; i < c->nqueued; i++) KL_TRY(kl_legacy_order(c->queued[i].stream));
    return ncclSuccess;
}

static ncclResult_t check_one_capture(ncclComm_t c)
{
    for (size_t i = 1; i < c->nqueued; i++)
        if (!kl_capture_same(c->queued[0].stream, c->queued[i].stream))
            return KL_REFUSE(
                koloReasonCaptureMerge,
                "the communicator of rank %d has operations of one group on streams of two captures, or on "
                "one that captures and one that does not: give each a group of its own",
                c->rank);
    return ncclSuccess;
}

/* Each communicator is in one capture, which may differ between communicators; but all are captured, or none is. */
static ncclResult_t check_captures(ncclComm_t comms)
{
    ncclComm_t first = NULL;

    for (ncclComm_t c = comms; c; c = c->group_next) {
        if (!c->nqueued) continue;
        KL_TRY(check_one_capture(c));
        if (!first) first = c;
        if (kl_capturing(c->queued[0].stream) == kl_capturing(first->queued[0].stream)) continue;
        bool captures = kl_capturing(c->queued[0].stream);
        return KL_REFUSE(koloReasonCaptureMerge,
                         "a group has operations of rank %d on a stream that captures, and of rank %d on one that does "
                         "not: capture all of them, or give each kind a group of its own",
                         captures ? c->rank : first->rank, captures ? first->rank : c->rank);
    }
    return ncclSuccess;
}

static struct kl_stream *stream_of(ncclComm_t comms)
{
    while (!comms->nqueued) comms = comms->group_next;
    return comms->queued[0].stream;
}

static ncclResult_t check_all(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next) {
        if (kl_comm_has_onesided(c))
            return kl_capture_refuse_unsupported(stream_of(comms), "a one-sided operation of the group");
        if (!c->nqueued) continue;
        KL_TRY(check_usage(c, c->queued[0].stream));
        KL_TRY(kl_capture_check(c->queued[0].stream));
        /* Here: a launch may not wait for work that other ranks get after it. */
        KL_TRY(kl_comm_reserve(c, c->nqueued));
    }
    return ncclSuccess;
}

static ncclResult_t capture_all(ncclComm_t comms)
{
    KL_TRY(check_all(comms));
    for (ncclComm_t c = comms; c; c = c->group_next)
        if (c->nqueued) KL_TRY(capture(c, c->queued, c->nqueued, &operations));
    return ncclSuccess;
}

/* All or nothing: no graph gets a part of the operations. */
static void invalidate_all(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next)
        if (c->nqueued) kl_capture_invalidate(c->queued[0].stream);
}

ncclResult_t kl_captured_group(ncclComm_t comms, bool *captured)
{
    uint32_t flags = flags_of(comms);

    *captured = flags & KL_STREAM_CAPTURING;
    if (!*captured) return flags & KL_STREAM_ORDERED ? put_in_order(comms) : ncclSuccess;
    KL_TRY(check_captures(comms));
    ncclResult_t rc = capture_all(comms);
    if (rc) invalidate_all(comms);
    return rc;
}
