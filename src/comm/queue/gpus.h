/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpus.h - operations of a communicator on GPUs. On one host they need no engine: a call, or a group, puts them on the GPUs
 * (coll/gpu/team.h) and returns when that is done. It waits for the calls of the other ranks, so ranks of one thread need
 * a group around theirs. Of ranks on several hosts the engine runs them (crossing.h), and a call waits for ranks of its
 * process only.
 *
 * Errors:  a failure after the checks fails the communicator.
 * Threads: the user's.
 */
#ifndef KL_COMM_QUEUE_GPUS_H
#define KL_COMM_QUEUE_GPUS_H

#include "comm/comm.h"

/** A phase of init: join the other ranks. On host devices nothing is done. */
ncclResult_t kl_comm_join_gpus(ncclComm_t comm);
void kl_comm_leave_gpus(ncclComm_t comm);

/** Wait for the operations issued so far, if the communicator is on GPUs. */
ncclResult_t kl_comm_synchronize_gpus(ncclComm_t comm);

/** Run the task in the next place of the queue (kl_comm_next_queued), which was checked, or leave it to the open group. */
ncclResult_t kl_comm_issue_on_gpus(ncclComm_t comm, cudaStream_t stream);

/** A collective without elements: it counts as a call, on all ranks or on none. */
ncclResult_t kl_comm_issue_empty_on_gpus(ncclComm_t comm, struct kl_task *task);

/** Run the queued operations, which were checked, of a group's communicators. */
ncclResult_t kl_comm_run_on_gpus(ncclComm_t comms);

#endif
