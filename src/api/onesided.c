/* SPDX-License-Identifier: Apache-2.0 */
/** onesided.c - put, signal, wait for signals: check, then hand over to the communicator. */
#include "comm/queue/onesided.h"

#include "api/api.h"
#include "api/check.h"
#include "comm/queue/group.h"
#include "comm/job.h"

#include <stdint.h>

static ncclResult_t enter(ncclComm_t handle, const char *function, cudaStream_t stream, struct ncclComm **comm,
                          struct kl_stream **s)
{
    KL_TRY(kl_comm_enter_as_issuer(handle, function, comm));
    ncclResult_t rc = kl_comm_failure(*comm);
    if (!rc && kl_load_relaxed(&(*comm)->finalized))
        rc = KL_FAIL(ncclInvalidArgument, "%s: the communicator was finalized", function);
    if (!rc && (*comm)->devices != &kl_host_devices)
        rc = KL_FAIL(ncclInvalidUsage, "%s: so far, communicators on GPUs have no one-sided operations", function);
    if (!rc) rc = kl_user_stream_of(stream, (*comm)->device, s);
    if (!rc) rc = kl_group_enter_issuer(*comm, function);
    if (rc) kl_handle_leave_as_issuer(*comm);
    return rc;
}

static ncclResult_t put(ncclComm_t handle, const struct kl_put *p, unsigned flags, cudaStream_t stream)
{
    struct ncclComm *comm;
    struct kl_stream *s;

    if (flags) return KL_FAIL(ncclInvalidArgument, "%s: flags %u, there are none yet", p->function, flags);
    KL_TRY(enter(handle, p->function, stream, &comm, &s));
    ncclResult_t rc = kl_comm_put(comm, p, s);
    kl_handle_leave_as_issuer(comm);
    return rc;
}

static ncclResult_t put_elements(struct kl_put *p, size_t count, ncclDataType_t type, unsigned flags, ncclComm_t comm,
                                 cudaStream_t stream)
{
    size_t bytes = kl_type_bytes(type);

    if (!bytes)
        return KL_FAIL(ncclInvalidArgument, "%s: data type %d, there are 0 to %d", p->function, (int)type,
                       ncclNumTypes - 1);
    KL_TRY(kl_check_reach(p->function, "count", "buffer", p->data, count, bytes, 1));
    if (!p->window) return KL_FAIL(ncclInvalidArgument, "%s: the window is NULL", p->function);
    p->bytes = count * bytes;
    return put(comm, p, flags, stream);
}

KL_PNCCL(ncclPutSignal);
ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct kl_put p = {.function = "ncclPutSignal",
                       .peer = peer,
                       .context = ctx,
                       .signal = sigIdx,
                       .data = localbuff,
                       .offset = peerWinOffset,
                       .window = peerWin};

    return kl_group_keep_error(put_elements(&p, count, datatype, flags, comm, stream));
}

KL_PNCCL(ncclSignal);
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_put p = {.function = "ncclSignal", .peer = peer, .context = ctx, .signal = sigIdx};

    return kl_group_keep_error(put(comm, &p, flags, stream));
}

static ncclResult_t await_signals(int n, const ncclWaitSignalDesc_t *wanted, ncclComm_t handle, cudaStream_t stream)
{
    struct ncclComm *comm;
    struct kl_stream *s;

    if (n < 0 || (n && !wanted))
        return KL_FAIL(ncclInvalidArgument, "ncclWaitSignal: %d descriptors%s", n,
                       n < 0 ? "" : ", and no list of them");
    KL_TRY(enter(handle, "ncclWaitSignal", stream, &comm, &s));
    ncclResult_t rc = kl_comm_await_signals(comm, wanted, n, s);
    kl_handle_leave_as_issuer(comm);
    return rc;
}

KL_PNCCL(ncclWaitSignal);
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream)
{
    return kl_group_keep_error(await_signals(nDesc, signalDescs, comm, stream));
}
