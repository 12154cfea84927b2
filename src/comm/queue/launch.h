/* SPDX-License-Identifier: Apache-2.0 */
/**
 * launch.h - how issue.c, record.c, launch.c and run.c work together.
 *
 *     issue.c   the destination         a stream, the open group, a graph (captured.h)
 *     record.c  the calls               tasks in a ring (record.h), of a call or a group
 *     launch.c  streams and order       one launch per call or group, on the user's stream; joins on its other streams
 *     run.c     the runner              wait for the turn, progress the tasks through coll/engine/exec.h
 *     pages.c   their buffers           huge pages for buffers that are used repeatedly
 */
#ifndef KL_COMM_QUEUE_LAUNCH_H
#define KL_COMM_QUEUE_LAUNCH_H

#include "coll/schedule/signature.h"
#include "comm/comm.h"

/** Meaning of a launch's work record: owner is the communicator. */
enum {
    KL_ARG_LAUNCH, /* its number */
    KL_ARG_FIRST,  /* its first task */
    KL_ARG_COUNTS  /* tasks, and streams that it waits for << 32. Of a join: 1 once it has arrived */
};

static inline size_t kl_comm_elem_bytes(ncclComm_t comm, const struct kl_task *t)
{
    return comm->redops[t->type][ncclSum].elem_bytes;
}

/** Is there room for `n` more tasks, and a launch of them? */
static inline bool kl_comm_has_room(ncclComm_t comm, uint64_t n)
{
    return kl_load_relaxed(&comm->tasks_taken) - kl_load_acquire(&comm->tasks_done) + n <= comm->task_room &&
           comm->launched - kl_load_acquire(&comm->finished) < KL_LAUNCHES; /* pair with finish_launch */
}

/** Drive the process until at most `tasks` tasks and `launches` launches are in flight. */
void kl_comm_wait_for_flight(ncclComm_t comm, uint64_t tasks, uint64_t launches);

/**
 * Instead of a launch of the last `ntasks` tasks: run them here and now, if nothing is queued before them, they are
 * small, and the other ranks' data are there. `patient`: where the stream runs inside the call and the ranks do not
 * share cores, wait some microseconds for the data. False: launch them; they continue from their current state.
 */
bool kl_comm_try_run_now(ncclComm_t comm, struct kl_stream *stream, uint32_t ntasks, bool patient);

/** Queue a launch of the last `ntasks` tasks, which begins when `streams` joins have arrived. */
void kl_comm_launch(ncclComm_t comm, struct kl_stream *stream, uint32_t ntasks, uint32_t streams);

/** Before it: queue a join on each of the operations' streams but the launch's own. Returns their number. */
uint32_t kl_comm_launch_joins(ncclComm_t comm, const struct kl_queued *ops, size_t n,
                              const struct kl_stream *launch_stream);

/** Tasks from the one in progress up to `next` begin. Only where there are `comm->pages`. */
void kl_comm_use_pages(ncclComm_t comm, uint64_t next);

/** Progress functions. A join tells the launch that its stream has reached it, and waits for the launch's end. */
enum kl_progress kl_comm_run_launch(struct kl_stream *stream, struct kl_work *work);
enum kl_progress kl_comm_join_launch(struct kl_stream *stream, struct kl_work *work);

#endif
