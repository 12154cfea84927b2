/* SPDX-License-Identifier: Apache-2.0 */
/**
 * group.h - the calls that a thread collects between ncclGroupStart and the matching ncclGroupEnd.
 *
 * Two kinds of members: operations, which stay with their communicators until the end and are then queued, communicator
 * by communicator in an order that is the same at all ranks, and deferred calls (the creation of a communicator), which
 * run side by side in threads of their own, because each waits for the others. The first error makes the whole group
 * fail, and nothing of it is queued. Calls of communicators that are not blocking continue in the background when the
 * group has ended.
 *
 * Threads: a group belongs to the thread that opened it.
 */
#ifndef KL_COMM_QUEUE_GROUP_H
#define KL_COMM_QUEUE_GROUP_H

#include "base/threadlocal.h"
#include "comm/comm.h"
#include "os/process.h"

/** A long call: it is made at the end of the group, and waited for there unless it runs in the background. */
struct kl_deferred {
    ncclResult_t (*run)(struct kl_deferred *call);
    void (*undo)(
        struct kl_deferred *call); /* after success, when another one of the group failed; NULL: nothing to undo */
    /** Instead of run, when the group fails; the thread's last error text is the reason. */
    void (*drop)(struct kl_deferred *call);
    struct ncclComm *comm; /* its communicator, with the job (job.h) */
    bool background;       /* its communicator is not blocking: the caller asks later how it ended */
    bool last;             /* it runs after the operations of the group, not before */
    struct kl_deferred *next;
    struct kl_deferred *behind; /* of the same communicator: it runs after this one, in the same thread */
    pthread_t thread;
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];
    bool started;
};

ncclResult_t kl_group_start(void);
ncclResult_t kl_group_end(void);

/**
 * End it without launching; the outermost returns the modelled time in `*time_us`: the communicators at the same time,
 * the operations of each one after the other. Inside of another group it returns none.
 */
ncclResult_t kl_group_simulate_end(float *time_us);

/** Nesting depth of this thread's groups, and the process that opened them: in a forked child there is none. */
extern KL_THREAD_LOCAL struct kl_group_depth {
    int depth;
    uint32_t generation;
} kl_group_depth;

/** Is a group open in this thread? */
static inline bool kl_group_open(void)
{
    return kl_group_depth.depth > 0 && kl_process_is(kl_group_depth.generation);
}

/** Add a communicator: its operations are collected from now on. */
void kl_group_join(ncclComm_t comm);

/** ncclInvalidUsage: it is in a group of another thread. */
ncclResult_t kl_group_check_owner(ncclComm_t comm, const char *function);

/** For a call that issues to a communicator (handle.h): it joins the open group, if there is one. */
static inline ncclResult_t kl_group_enter_issuer(ncclComm_t comm, const char *function)
{
    if (kl_load_relaxed(&comm->in_group)) return kl_group_check_owner(comm, function);
    if (kl_group_open()) kl_group_join(comm);
    return ncclSuccess;
}

/** The communicator is going away: remove it and its deferred calls from the calling thread's group. */
void kl_group_forget(ncclComm_t comm);

/** Remember the first error of a call inside the group; returns rc. */
ncclResult_t kl_group_store_error(ncclResult_t rc);

static inline ncclResult_t kl_group_keep_error(ncclResult_t rc)
{
    return rc ? kl_group_store_error(rc) : rc;
}

/**
 * Make a long call, or defer it to the end of the open group. It is freed (free(3)) when it has run or was dropped.
 * ncclInProgress: it runs in the background.
 */
ncclResult_t kl_group_call(struct kl_deferred *call);

#endif
