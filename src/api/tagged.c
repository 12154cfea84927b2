/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tagged.c - messages with tags: check, then call the communicator's queues (tagged/tagged.h).
 */
#include "api/check.h"
#include "base/clock.h"
#include "comm/job.h"
#include "include/kolo.h"

#define MOST_WAIT_MS (365ull * 24 * 3600 * 1000)

/* ---- calls on a communicator ---- */

static ncclResult_t check_ready(struct ncclComm *comm, const char *function)
{
    KL_TRY(kl_comm_failure(comm));
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "%s: the communicator was finalized", function);
    if (comm->devices != &kl_host_devices)
        return KL_FAIL(ncclInvalidUsage, "%s: communicators on GPUs have no messages with tags", function);
    return ncclSuccess;
}

static ncclResult_t enter(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    KL_TRY(kl_comm_enter(handle, function, comm));
    ncclResult_t rc = check_ready(*comm, function);
    if (rc) kl_handle_leave(*comm);
    return rc;
}

static ncclResult_t check_envelope(const struct ncclComm *comm, const char *function, int peer, int tag, bool any)
{
    if ((!any || peer != KOLO_ANY) && (peer < 0 || peer >= comm->nranks))
        return KL_FAIL(ncclInvalidArgument, "%s: peer %d, the communicator has ranks 0 to %d%s", function, peer,
                       comm->nranks - 1, any ? ", and KOLO_ANY" : "");
    if (tag < 0 && (!any || tag != KOLO_ANY))
        return KL_FAIL(ncclInvalidArgument, "%s: tag %d, tags are 0 or more%s", function, tag,
                       any ? ", or KOLO_ANY" : "");
    return ncclSuccess;
}

static ncclResult_t check_buffer(const char *function, const void *buf, size_t bytes, const void *request)
{
    if (!request) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    if (bytes && !buf) return KL_FAIL(ncclInvalidArgument, "%s: the buffer is NULL", function);
    return kl_check_reach(function, "bytes", "buffer", buf, bytes, 1, 1);
}

/* A send, whose data are `from`, or a receive to `to`. */
struct transfer {
    const char *function;
    const void *from;
    void *to;
    size_t bytes;
    int peer, tag;
};

static ncclResult_t begin(ncclComm_t comm, const struct transfer *t, bool sends, koloRequest_t *request)
{
    struct ncclComm *c;
    uint64_t id = 0;

    KL_TRY(check_buffer(t->function, sends ? t->from : t->to, t->bytes, request));
    KL_TRY(enter(comm, t->function, &c));
    ncclResult_t rc = check_envelope(c, t->function, t->peer, t->tag, !sends);
    const uint64_t timeout_ns = kl_read_once(&c->timeout_ns);
    if (!rc)
        rc = sends ? kl_tagged_send(c->tagged, t->from, t->bytes, t->peer, t->tag, timeout_ns, &id)
                   : kl_tagged_receive(c->tagged, t->to, t->bytes, t->peer, t->tag, timeout_ns, &id);
    kl_handle_leave(c);
    if (!rc) *request = (koloRequest_t)(uintptr_t)id;
    return rc;
}

ncclResult_t koloMessageSend(const void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request)
{
    const struct transfer t = {.function = "koloMessageSend", .from = buf, .bytes = bytes, .peer = peer, .tag = tag};

    return begin(comm, &t, true, request);
}

ncclResult_t koloMessageRecv(void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request)
{
    const struct transfer t = {.function = "koloMessageRecv", .to = buf, .bytes = bytes, .peer = peer, .tag = tag};

    return begin(comm, &t, false, request);
}

ncclResult_t koloMessageProbe(int peer, int tag, ncclComm_t comm, koloMessageStatus_t *status)
{
    struct ncclComm *c;
    struct kl_tagged_status found;

    if (!status) return KL_FAIL(ncclInvalidArgument, "koloMessageProbe: the result pointer is NULL");
    KL_TRY(enter(comm, "koloMessageProbe", &c));
    ncclResult_t rc = check_envelope(c, "koloMessageProbe", peer, tag, true);
    if (!rc) rc = kl_tagged_probe(c->tagged, peer, tag, &found);
    kl_handle_leave(c);
    if (!rc) *status = (koloMessageStatus_t){.source = found.source, .tag = found.tag, .bytes = found.bytes};
    return rc;
}

/* ---- calls on a request: its lowest bits are the number of its communicator ---- */

static uint64_t id_of(koloRequest_t request)
{
    return (uint64_t)(uintptr_t)request;
}

static ncclResult_t enter_of(koloRequest_t request, const char *function, struct ncclComm **comm)
{
    *comm = request ? kl_handle_try_number((unsigned)(id_of(request) & UINT16_MAX)) : NULL;
    if (*comm && (*comm)->tagged) return ncclSuccess;
    if (*comm) kl_handle_leave(*comm);
    return KL_FAIL(ncclInvalidArgument, "%s: %p is no request, or its communicator has ended", function,
                   (void *)request);
}

static ncclResult_t await(koloRequest_t request, uint64_t deadline, const char *function, koloMessageStatus_t *status)
{
    struct ncclComm *c;
    struct kl_tagged_status its = {.source = KOLO_ANY};

    KL_TRY(enter_of(request, function, &c));
    ncclResult_t rc = kl_tagged_wait(c->tagged, id_of(request), deadline, function, &its);
    kl_handle_leave(c);
    if (!rc && status) *status = (koloMessageStatus_t){.source = its.source, .tag = its.tag, .bytes = its.bytes};
    return rc;
}

ncclResult_t koloRequestTest(koloRequest_t request, koloMessageStatus_t *status)
{
    return await(request, 0, "koloRequestTest", status);
}

ncclResult_t koloRequestWait(koloRequest_t request, unsigned long long milliseconds, koloMessageStatus_t *status)
{
    bool limited = milliseconds && milliseconds <= MOST_WAIT_MS;

    return await(request, limited ? kl_deadline_in_ms(milliseconds) : KL_NO_DEADLINE, "koloRequestWait", status);
}

static ncclResult_t end(koloRequest_t request, const char *function,
                        ncclResult_t (*how)(struct kl_tagged *tagged, uint64_t id, const char *function))
{
    struct ncclComm *c;

    KL_TRY(enter_of(request, function, &c));
    ncclResult_t rc = how(c->tagged, id_of(request), function);
    kl_handle_leave(c);
    return rc;
}

ncclResult_t koloRequestCancel(koloRequest_t request)
{
    return end(request, "koloRequestCancel", kl_tagged_cancel);
}

ncclResult_t koloRequestFree(koloRequest_t request)
{
    return request ? end(request, "koloRequestFree", kl_tagged_forget) : ncclSuccess;
}
