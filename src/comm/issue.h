/* SPDX-License-Identifier: Apache-2.0 */
/**
 * issue.h - how an operation comes to its communicator: it is put together where it stays, checked, and issued.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_ISSUE_H
#define KL_COMM_ISSUE_H

#include "comm/launch.h"

/** Where the next operation of a group, or of a graph, is put together. */
ncclResult_t kl_comm_next_queued(ncclComm_t comm, struct kl_task **task);

/**
 * Where the next task on `stream` is to be written, be it for the ring or for the open group; it stays there if it is issued. May wait
 * for room in the ring.
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

/** The same for a collective without elements: nothing is to be done, but that it was called counts. */
ncclResult_t kl_comm_issue_empty(ncclComm_t comm, struct kl_task *task, struct kl_stream *stream);

#endif
