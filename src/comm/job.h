/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.h - what takes long on a communicator: to make it, to finish its work, to make another one of it.
 *
 * A job runs in the thread that asked for it, or at the end of its group, or, where the communicator is not blocking, in a thread
 * of its own, while the call returns ncclInProgress. Until it ends the communicator is busy: all calls but questions about its
 * state and aborts are ncclInvalidArgument. The job is inside (handle.h) from its begin to its end, so whoever ends the communicator
 * waits for it; an abort makes it fail at once.
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

/** kl_handle_enter for calls that need a communicator on which no job is under way. */
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

/** kl_comm_enter, also for one that is suspended. */
ncclResult_t kl_comm_enter_suspended(ncclComm_t handle, const char *function, struct ncclComm **comm);

/**
 * Enter, and be the job that is under way. Only KL_BUSY_RESUME may begin with one that is suspended, and with no other. Windows and
 * children of one group are queued behind each other: each begins, and ends.
 */
ncclResult_t kl_job_begin(ncclComm_t handle, enum kl_busy kind, const char *function, struct ncclComm **comm);

/**
 * It ended with `rc`, and the thread's last sentence if that is a failure: of a communicator that is not blocking, its state says so
 * from now on. The last look at the communicator; returns `rc`.
 */
ncclResult_t kl_job_end(struct ncclComm *comm, ncclResult_t rc);

/** It shall not be done. The last look at the communicator. */
void kl_job_cancel(struct ncclComm *comm);

#endif
