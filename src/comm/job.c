/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/job.h"

#include "os/thread.h"

#include <stdio.h>

static const char *const kinds[KL_BUSY_KINDS] = {
    [KL_BUSY_INIT] = "its creation",
    [KL_BUSY_FINALIZE] = "its finalization",
    [KL_BUSY_CHILD] = "the creation of another one from it",
    [KL_BUSY_WINDOW] = "the registration of a window",
    [KL_BUSY_REVOKE] = "its revocation",
    [KL_BUSY_SUSPEND] = "its suspension",
    [KL_BUSY_RESUME] = "its resumption",
};

/* ---- entering ---- */

static ncclResult_t refuse(struct ncclComm *comm, uint32_t busy, const char *function)
{
    int rank = comm->rank;

    kl_handle_leave(comm);
    if (busy == KL_SUSPENDED)
        return KL_FAIL(ncclInvalidUsage, "%s: the communicator of rank %d is suspended: call ncclCommResume", function,
                       rank);
    if (busy == KL_IDLE)
        return KL_FAIL(ncclInvalidUsage, "%s: the communicator of rank %d is not suspended", function, rank);
    return KL_FAIL(ncclInvalidArgument,
                   "%s: the communicator of rank %d is not ready, %s is in progress: call ncclCommGetAsyncError until "
                   "it is not",
                   function, rank, kinds[busy]);
}

static bool may_be_queued_behind(const struct ncclComm *comm, uint32_t busy)
{
    return (busy == KL_BUSY_WINDOW || busy == KL_BUSY_CHILD) && kl_load_relaxed(&comm->deferred_by) == kl_thread_self();
}

ncclResult_t kl_job_check(struct ncclComm *comm, uint32_t busy, const char *function)
{
    return may_be_queued_behind(comm, busy) ? ncclSuccess : refuse(comm, busy, function);
}

ncclResult_t kl_job_check_issuer(struct ncclComm *comm, uint32_t busy, const char *function)
{
    if (may_be_queued_behind(comm, busy)) return ncclSuccess;
    kl_handle_end_issuing(comm);
    return refuse(comm, busy, function);
}

ncclResult_t kl_comm_enter_suspended(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    KL_TRY(kl_handle_enter(handle, function, comm));
    uint32_t busy = kl_load_acquire(&(*comm)->busy); /* pairs with kl_job_cancel */
    return busy && busy != KL_SUSPENDED ? refuse(*comm, busy, function) : ncclSuccess;
}

ncclResult_t kl_job_begin(ncclComm_t handle, enum kl_busy kind, const char *function, struct ncclComm **comm)
{
    uint32_t idle = kind == KL_BUSY_RESUME ? KL_SUSPENDED : KL_IDLE;

    KL_TRY(kl_handle_enter(handle, function, comm));
    if (kl_cas_acq_rel(&(*comm)->busy, &idle, (uint32_t)kind)) return ncclSuccess;
    if ((kind != KL_BUSY_WINDOW && kind != KL_BUSY_CHILD) || !may_be_queued_behind(*comm, idle))
        return refuse(*comm, idle, function);
    (*comm)->jobs_behind++;
    return ncclSuccess;
}

void kl_job_cancel(struct ncclComm *comm)
{
    if (comm->jobs_behind)
        comm->jobs_behind--;
    else
        kl_store_release(&comm->busy, comm->suspended ? KL_SUSPENDED : KL_IDLE); /* pairs with kl_comm_enter */
    kl_handle_leave(comm);
}

ncclResult_t kl_job_end(struct ncclComm *comm, ncclResult_t rc)
{
    pthread_mutex_lock(&comm->failure.lock);
    const bool counts = !comm->job.failed_before;
    if (counts) comm->job.rc = comm->blocking ? ncclSuccess : rc;
    comm->job.failed_before = comm->job.rc && comm->jobs_behind;
    if (rc && counts) snprintf(comm->job.text, sizeof comm->job.text, "%s", kl_error_text());
    pthread_mutex_unlock(&comm->failure.lock);
    kl_job_cancel(comm);
    return rc;
}

ncclResult_t kl_comm_state(ncclComm_t comm)
{
    char text[KL_ERROR_TEXT];

    uint32_t busy = kl_load_acquire(&comm->busy); /* pairs with kl_job_cancel */

    /* The failure is returned when these jobs have ended, which it makes them do: then the communicator can be
     * destroyed. */
    if (busy == KL_BUSY_REVOKE || busy == KL_BUSY_FINALIZE) return ncclInProgress;
    KL_TRY(kl_comm_failure_unless_revoked(comm));
    if (busy && busy != KL_SUSPENDED) return ncclInProgress;
    pthread_mutex_lock(&comm->failure.lock);
    ncclResult_t rc = comm->job.rc;
    if (rc) snprintf(text, sizeof text, "%s", comm->job.text);
    pthread_mutex_unlock(&comm->failure.lock);
    if (rc) kl_error_adopt(text);
    return rc;
}
