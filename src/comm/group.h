/* SPDX-License-Identifier: Apache-2.0 */
/**
 * group.h - what a thread collects between ncclGroupStart and the matching ncclGroupEnd.
 *
 * Two kinds of members: operations, which stay with their communicators until the end and are then queued communicator by
 * communicator, and deferred calls (the creation of a communicator), which run side by side in threads of their own, because
 * each waits for the others. The first error makes the whole group fail, and nothing of it is queued.
 *
 * Threads: a group belongs to the thread that opened it.
 */
#ifndef KL_COMM_GROUP_H
#define KL_COMM_GROUP_H

#include "comm/comm.h"

/** A call that takes long: it is made at the end of the group, and waited for there. */
struct kl_deferred {
    ncclResult_t (*run)(struct kl_deferred *call);
    void (*undo)(struct kl_deferred *call); /* after success, when another one of the group failed */
    struct kl_deferred *next;
    pthread_t thread;
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];
    bool started;
};

ncclResult_t kl_group_start(void);
ncclResult_t kl_group_end(void);

/** Is a group open in this thread? */
bool kl_group_open(void);

/** A communicator takes part: its operations are collected from now on. */
void kl_group_join(ncclComm_t comm);

/** The communicator is going away: take it out of the calling thread's group. */
void kl_group_forget(ncclComm_t comm);

/** Remember the first error of a call inside the group; returns rc. */
ncclResult_t kl_group_note(ncclResult_t rc);

/** Defer a call; it is freed (free(3)) at the end of the group. Only inside a group. */
void kl_group_defer(struct kl_deferred *call);

#endif
