/* SPDX-License-Identifier: Apache-2.0 */
/**
 * communicator.c - version, ids, queries about communicators, and their end.
 */
#include "api/api.h"
#include "api/create.h"
#include "base/log.h"
#include "comm/group.h"
#include "comm/job.h"

#include <stdlib.h>

KL_PNCCL(ncclGetVersion);
ncclResult_t ncclGetVersion(int *version)
{
    if (!version) return KL_FAIL(ncclInvalidArgument, "ncclGetVersion: the result pointer is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

KL_PNCCL(ncclGetErrorString);
const char *ncclGetErrorString(ncclResult_t result)
{
    return kl_result_text(result);
}

KL_PNCCL(ncclGetLastError);
const char *ncclGetLastError(ncclComm_t comm)
{
    struct ncclComm *c = kl_handle_try(comm);

    if (c) {
        ncclResult_t rc = kl_comm_failure(c); /* sets this thread's last error text */
        kl_handle_leave(c);
        if (rc) return kl_error_text();
    }
    return kl_error_of_process();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
KL_PNCCL(ncclResetDebugInit);
void ncclResetDebugInit(void)
{
    kl_log_reset();
}
#pragma GCC diagnostic pop

KL_PNCCL(ncclGetUniqueId);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (!id) return KL_FAIL(ncclInvalidArgument, "ncclGetUniqueId: the result pointer is NULL");
    return kl_bootstrap_id_create(id);
}

/* ---- the end ---- */

ncclResult_t kl_api_abort(ncclComm_t handle, const char *function)
{
    struct ncclComm *comm;

    KL_TRY(kl_handle_enter(handle, function, &comm));
    bool mine = kl_handle_close(comm);
    if (mine) kl_group_forget(comm);
    kl_handle_leave(comm);
    if (!mine) return KL_FAIL(ncclInvalidArgument, "%s: another thread ends the communicator", function);
    kl_comm_abort(comm);
    return ncclSuccess;
}

static void drop_job(struct kl_deferred *call)
{
    kl_job_cancel(call->comm);
}

/* A call that changes a communicator. */
struct doing {
    struct kl_deferred call; /* first: the group frees it */
    ncclResult_t (*what)(struct ncclComm *comm);
};

static ncclResult_t run_doing(struct kl_deferred *call)
{
    struct doing *d = (struct doing *)call;

    return kl_job_end(call->comm, d->what(call->comm));
}

/* The communicator is busy. `last`: after the operations of the open group. */
static ncclResult_t call_it(struct ncclComm *comm, ncclResult_t (*what)(struct ncclComm *comm), bool last)
{
    struct doing *d = calloc(1, sizeof *d);

    if (!d) {
        kl_job_cancel(comm);
        return KL_NOMEM("a call");
    }
    d->call = (struct kl_deferred){
        .run = run_doing, .drop = drop_job, .comm = comm, .background = !comm->blocking, .last = last};
    d->what = what;
    return kl_group_call(&d->call);
}

static ncclResult_t check_finalize(struct ncclComm *comm)
{
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommFinalize: the communicator was finalized before");
    if (kl_load_relaxed(&comm->revoked))
        return KL_FAIL(ncclInvalidUsage, "ncclCommFinalize: the communicator was revoked: destroy it");
    return ncclSuccess;
}

static ncclResult_t finalize(struct ncclComm *comm)
{
    ncclResult_t rc = check_finalize(comm);

    if (rc) {
        kl_job_cancel(comm);
        return rc;
    }
    return call_it(comm, kl_comm_finalize, true);
}

KL_PNCCL(ncclCommFinalize);
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    struct ncclComm *c;

    if (!comm) return ncclSuccess;
    KL_TRY(kl_job_begin(comm, KL_BUSY_FINALIZE, "ncclCommFinalize", &c));
    return kl_group_note(finalize(c));
}

/* It does not wait for other ranks, and takes place at once, because the other calls of the group are to fail. */
KL_PNCCL(ncclCommRevoke);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    struct ncclComm *c;

    if (revokeFlags != NCCL_REVOKE_DEFAULT)
        return KL_FAIL(ncclInvalidArgument, "ncclCommRevoke: flags %d; there is NCCL_REVOKE_DEFAULT", revokeFlags);
    KL_TRY(kl_job_begin(comm, KL_BUSY_REVOKE, "ncclCommRevoke", &c));
    return kl_job_end(c, kl_comm_revoke(c));
}

static ncclResult_t check_suspend(struct ncclComm *comm, int flags)
{
    if (flags != NCCL_SUSPEND_MEM)
        return KL_FAIL(ncclInvalidArgument, "ncclCommSuspend: flags %d; there is NCCL_SUSPEND_MEM", flags);
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommSuspend: the communicator was finalized");
    return kl_comm_failure(comm);
}

static ncclResult_t suspend(ncclComm_t handle, int flags)
{
    struct ncclComm *comm;

    KL_TRY(kl_job_begin(handle, KL_BUSY_SUSPEND, "ncclCommSuspend", &comm));
    ncclResult_t rc = check_suspend(comm, flags);
    if (!rc) return call_it(comm, kl_comm_suspend, false);
    kl_job_cancel(comm);
    return rc;
}

KL_PNCCL(ncclCommSuspend);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    return kl_group_note(suspend(comm, flags));
}

static ncclResult_t resume(ncclComm_t handle)
{
    struct ncclComm *comm;

    KL_TRY(kl_job_begin(handle, KL_BUSY_RESUME, "ncclCommResume", &comm));
    return call_it(comm, kl_comm_resume, false);
}

KL_PNCCL(ncclCommResume);
ncclResult_t ncclCommResume(ncclComm_t comm)
{
    return kl_group_note(resume(comm));
}

/* An abort from another thread ends the wait for queued operations, and then frees the communicator itself. */
KL_PNCCL(ncclCommDestroy);
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    struct ncclComm *c;

    if (!comm) return ncclSuccess;
    KL_TRY(kl_comm_enter_suspended(comm, "ncclCommDestroy", &c));
    kl_group_forget(c);
    ncclResult_t rc = kl_comm_finalize(c); /* again: an open group may have queued operations since */
    bool mine = kl_handle_close(c);
    kl_handle_leave(c);
    if (mine) kl_comm_destroy(c);
    return rc;
}

KL_PNCCL(ncclCommAbort);
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return comm ? kl_api_abort(comm, "ncclCommAbort") : ncclSuccess;
}

/* ---- questions ---- */

KL_PNCCL(ncclCommGetAsyncError);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    struct ncclComm *c;

    if (!asyncError) return KL_FAIL(ncclInvalidArgument, "ncclCommGetAsyncError: the result pointer is NULL");
    KL_TRY(kl_handle_enter(comm, "ncclCommGetAsyncError", &c));
    *asyncError = kl_comm_state(c);
    kl_handle_leave(c);
    return ncclSuccess;
}

struct answers {
    int nranks, rank, device;
};

static ncclResult_t ask(ncclComm_t handle, const int *result, const char *function, struct answers *answers)
{
    struct ncclComm *comm;

    if (!result) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    KL_TRY(kl_comm_enter_suspended(handle, function, &comm));
    *answers = (struct answers){.nranks = comm->nranks, .rank = comm->rank, .device = comm->device};
    kl_handle_leave(comm);
    return ncclSuccess;
}

KL_PNCCL(ncclCommCount);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    struct answers a;

    KL_TRY(ask(comm, count, "ncclCommCount", &a));
    *count = a.nranks;
    return ncclSuccess;
}

KL_PNCCL(ncclCommCuDevice);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    struct answers a;

    KL_TRY(ask(comm, device, "ncclCommCuDevice", &a));
    *device = a.device;
    return ncclSuccess;
}

KL_PNCCL(ncclCommUserRank);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    struct answers a;

    KL_TRY(ask(comm, rank, "ncclCommUserRank", &a));
    *rank = a.rank;
    return ncclSuccess;
}
