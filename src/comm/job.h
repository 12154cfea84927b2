/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.h - long operations on a communicator: creating it, finishing its work, creating a child.
 *
 * A job runs in the thread that asked for it, or at the end of its group, or, where the communicator is not blocking,
 * in a thread of its own, while the call returns ncclInProgress. Until it ends the communicator is busy: all calls but
 * questions about its state and aborts are ncclInvalidArgument. The job is inside (handle.h) from its begin to its end,
 * so a thread that ends the communicator waits for it; an abort makes it fail at once.
 *
 * Threads: any.
 */
#ifndef KL_COMM_JOB_H
#define KL_COMM_JOB_H

#include "comm/comm.h"

/**
 * It was entered, and is busy. ncclSuccess: with windows or children that the calling thread's open group has deferred, so that it
 * may be used until the group ends. Else the refusal, after the last look at the communicator.
 */
ncclResult_t kl_job_check(struct ncclComm *comm, uint32_t busy, const char *function);

/** The same of one that was entered as an issuer. */
ncclResult_t kl_job_check_issuer(struct ncclComm *comm, uint32_t busy, const char *function);

/** kl_handle_enter for calls that need a communicator without a job in progress. */
static inline ncclResult_t kl_comm_enter(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    KL_TRY(kl_handle_enter(handle, function, comm));
    uint32_t busy = kl_load_acquire(&(*comm)->busy); /* pairs with kl_job_cancel: what the job made is there */
    return busy ? kl_job_check(*comm, busy, function) : ncclSuccess;
}

/** The same as an issuer. */
static inline ncclResult_t kl_comm_enter_as_issuer(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    KL_TRY(kl_handle_enter_as_issuer(handle, function, comm));
    uint32_t busy = kl_load_acquire(&(*comm)->busy); /* pairs with kl_job_cancel: what the job made is there */
    return busy ? kl_job_check_issuer(*comm, busy, function) : ncclSuccess;
}

/** As kl_comm_enter, also for a suspended communicator. */
ncclResult_t kl_comm_enter_suspended(ncclComm_t handle, const char *function, struct ncclComm **comm);

/**
 * Enter, and be the job that is under way. Only KL_BUSY_RESUME may begin with one that is suspended, and with no other. Windows and
 * children of one group are queued behind each other: each begins, and ends.
 */
ncclResult_t kl_job_begin(ncclComm_t handle, enum kl_busy kind, const char *function, struct ncclComm **comm);

/**
 * The job ended with `rc`, and the thread's last error text if that is a failure: the state of a communicator that is
 * not blocking reports it from now on. The last access to the communicator; returns `rc`.
 */
ncclResult_t kl_job_end(struct ncclComm *comm, ncclResult_t rc);

/** Cancel a job that was begun and will not run. The last access to the communicator. */
void kl_job_cancel(struct ncclComm *comm);

#endif
