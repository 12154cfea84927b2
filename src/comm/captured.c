/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/captured.h"

#include "comm/job.h"
#include "comm/onesided.h"
#include "device/host/capture.h"
#include "device/host/legacy.h"

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
    return kl_comm_make_room(comm, n);
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

static bool alike(const void *data, const void *other)
{
    const struct captured *a = data, *b = other;

    if (a->handle != b->handle || a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->op[i].task.func != b->op[i].task.func || a->lane[i] != b->lane[i]) return false;
    return true;
}

static const struct kl_recorded_kind kind = {
    .check = check,
    .launch = launch,
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

static ncclResult_t capture(ncclComm_t comm, const struct kl_queued *ops, size_t n)
{
    if (comm->wish.graph_usage == 0)
        return KL_FAIL(ncclInvalidUsage,
                       "the communicator of rank %d was made for no graphs (graphUsageMode 0), and a stream captures",
                       comm->rank);
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
    ncclResult_t rc = kl_capture_other(c->used, n, &kind, c, c->lane);
    if (rc) free_captured(c);
    return rc;
}

ncclResult_t kl_captured_op(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream, bool *captured)
{
    struct kl_queued op = {.task = *task, .stream = stream};

    *captured = kl_capturing(stream);
    return *captured ? capture(comm, &op, 1) : kl_legacy_order(stream);
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

/* Each stream is of the same capture as the first one. */
static ncclResult_t check_same(ncclComm_t comms)
{
    struct kl_stream *pair[2] = {NULL};
    bool capturing;

    for (ncclComm_t c = comms; c; c = c->group_next) {
        if (kl_comm_has_onesided(c))
            return KL_FAIL(ncclInvalidUsage,
                           "ncclGroupEnd: the group is captured, which one-sided operations cannot be");
        for (size_t i = 0; i < c->nqueued; i++) {
            pair[1] = c->queued[i].stream;
            if (!pair[0]) pair[0] = pair[1];
            KL_TRY(kl_capture_same(pair, 2, &capturing));
        }
    }
    return ncclSuccess;
}

ncclResult_t kl_captured_group(ncclComm_t comms, bool *captured)
{
    uint32_t flags = flags_of(comms);

    *captured = flags & KL_STREAM_CAPTURING;
    if (flags & KL_STREAM_CAPTURING) {
        KL_TRY(check_same(comms));
        for (ncclComm_t c = comms; c; c = c->group_next)
            if (c->nqueued) KL_TRY(capture(c, c->queued, c->nqueued));
        return ncclSuccess;
    }
    return flags & KL_STREAM_ORDERED ? put_in_order(comms) : ncclSuccess;
}
