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

static ncclResult_t publish(ncclResult_t rc, uint64_t id, koloRequest_t *request)
{
    if (!rc) *request = (koloRequest_t)(uintptr_t)id;
    return rc;
}

ncclResult_t koloMessageSend(const void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request)
{
    struct ncclComm *c;
    uint64_t id = 0;

    KL_TRY(check_buffer("koloMessageSend", buf, bytes, request));
    KL_TRY(enter(comm, "koloMessageSend", &c));
    ncclResult_t rc = check_envelope(c, "koloMessageSend", peer, tag, false);
    if (!rc) rc = kl_tagged_send(c->tagged, buf, bytes, peer, tag, kl_read_once(&c->timeout_ns), &id);
    kl_handle_leave(c);
    return publish(rc, id, request);
}

ncclResult_t koloMessageRecv(void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request)
{
    struct ncclComm *c;
    uint64_t id = 0;

    KL_TRY(check_buffer("koloMessageRecv", buf, bytes, request));
    KL_TRY(enter(comm, "koloMessageRecv", &c));
    ncclResult_t rc = check_envelope(c, "koloMessageRecv", peer, tag, true);
    if (!rc) rc = kl_tagged_receive(c->tagged, buf, bytes, peer, tag, kl_read_once(&c->timeout_ns), &id);
    kl_handle_leave(c);
    return publish(rc, id, request);
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

ncclResult_t koloRequestCancel(koloRequest_t request)
{
    struct ncclComm *c;

    KL_TRY(enter_of(request, "koloRequestCancel", &c));
    ncclResult_t rc = kl_tagged_cancel(c->tagged, id_of(request), "koloRequestCancel");
    kl_handle_leave(c);
    return rc;
}

ncclResult_t koloRequestFree(koloRequest_t request)
{
    struct ncclComm *c;

    if (!request) return ncclSuccess;
    KL_TRY(enter_of(request, "koloRequestFree", &c));
    ncclResult_t rc = kl_tagged_forget(c->tagged, id_of(request), "koloRequestFree");
    kl_handle_leave(c);
    return rc;
}
