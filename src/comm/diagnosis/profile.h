/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profile.h - events of a profiler plugin (os/profiler.h) for calls and launches of a communicator.
 *
 *     group         thread of the calls: its first operation ... the end of ncclGroupEnd (of a call by itself: the call)
 *       call        the call of an operation
 *       launch      its hand-over to a stream
 *       group, collective or message: its hand-over; their children (coll/engine/profile.h) come later
 *
 * Threads: the calling threads; kl_comm_profile_event also the runner.
 */
#ifndef KL_COMM_DIAGNOSIS_PROFILE_H
#define KL_COMM_DIAGNOSIS_PROFILE_H

#include "base/threadlocal.h"
#include "coll/engine/task.h"
#include "device/host/stream.h"
#include "include/nccl.h"
#include "os/profiler.h"

struct kl_comm_profile;

/** The event of a call, with the program's tag, for its launch. */
struct kl_profile_call {
    void *event;
    uint64_t tag;
};

/** Start the plugin for a communicator, if there is one: comm->profile. */
ncclResult_t kl_comm_profile_open(ncclComm_t comm);
void kl_comm_profile_close(ncclComm_t comm);

/** The plugin's context; NULL: none. */
const struct kl_profiler *kl_comm_profiler(ncclComm_t comm);

/** All below: only with comm->profile. As many tasks may be in flight from now on. */
ncclResult_t kl_comm_profile_reserve(ncclComm_t comm, uint64_t room);

/** A call begins, in a group or by itself; and ends. `tag`: of the program. `depth`:
 * of the open group; 0: none. */
void kl_comm_profile_call_begin(ncclComm_t comm, const struct kl_task *task, const struct kl_stream *stream,
                                uint64_t tag, int depth, struct kl_profile_event *call);
void kl_comm_profile_call_end(struct kl_profile_event *call, int depth);

/** The call of this thread that is under way. */
struct kl_profile_call kl_comm_profile_call(void);

/** Task `number` belongs to this call. */
void kl_comm_profile_note(ncclComm_t comm, uint64_t number, struct kl_profile_call call);

/** The last `ntasks` tasks are handed over to a stream; and have been. */
void kl_comm_profile_launch_begin(ncclComm_t comm, const struct kl_stream *stream, uint32_t ntasks);
void kl_comm_profile_launch_end(ncclComm_t comm, uint32_t ntasks);

/** For struct kl_profiling: `comm`. */
void *kl_comm_profile_event(void *comm, const struct kl_task *task);

/** Has the thread's outermost group an event? */
extern KL_THREAD_LOCAL bool kl_comm_profile_in_group;

/** Its group ends; and has ended. */
void kl_comm_profile_end_group(void);
void kl_comm_profile_stop_group(void);

/** The same, also without a profiler. */
static inline void kl_comm_profile_group_ends(void)
{
    if (kl_comm_profile_in_group) kl_comm_profile_end_group();
}

static inline void kl_comm_profile_group_ended(void)
{
    if (kl_comm_profile_in_group) kl_comm_profile_stop_group();
}

#endif
