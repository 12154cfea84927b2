/* SPDX-License-Identifier: Apache-2.0 */
/**
 * issue.h - how an operation is issued: it is built in place, checked, and queued.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_ISSUE_H
#define KL_COMM_ISSUE_H

#include "comm/launch.h"

/** Place for the next operation of a group, or of a graph. */
ncclResult_t kl_comm_next_queued(ncclComm_t comm, struct kl_task **task);

/**
 * Place for the next task on `stream`, in the ring or in the open group; it stays there if it is issued. May wait for
 * room in the ring.
 */
static inline ncclResult_t kl_comm_next_task(ncclComm_t comm, const struct kl_stream *stream, struct kl_task **task)
{
    if (kl_load_relaxed(&comm->in_group) || kl_load_relaxed(&stream->flags) & KL_STREAM_CAPTURING)
        return kl_comm_next_queued(comm, task);
    if (!kl_comm_has_room(comm, 1)) KL_TRY(kl_comm_make_room(comm, 1));
    *task = kl_comm_task(comm, kl_load_relaxed(&comm->tasks_taken));
    return ncclSuccess;
}

/** Record the next task, already checked, with its plan: queue it on `stream`, or add it to the calling thread's open
 * group. */
ncclResult_t kl_comm_issue(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream);

/** The same for a collective without elements: it only counts as a call. */
ncclResult_t kl_comm_issue_empty(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream);

#endif
