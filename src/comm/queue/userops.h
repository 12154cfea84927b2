/* SPDX-License-Identifier: Apache-2.0 */
/**
 * userops.h - operations of one communicator that a program makes: sums of contributions that each rank multiplies
 * first.
 *
 * A handle is a number behind the built-in operations: an entry, and the use of it by a communicator, so that a
 * destroyed operation, or another communicator's, is recognised. Queued operations keep their entry: it is used again
 * only when all earlier launches have finished.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_QUEUE_USEROPS_H
#define KL_COMM_QUEUE_USEROPS_H

#include "coll/engine/task.h"

#include <stdbool.h>

struct ncclComm;
struct kl_userop;

/** Of a communicator; zeroed at first. */
struct kl_userops {
    struct kl_userop **entry; /* each stays where it is */
    uint32_t n;
};

/** `scalar` is an element of `type`: read now, or, with `later`, at the begin of each operation with it. */
ncclResult_t kl_userop_create(struct ncclComm *comm, ncclDataType_t type, const void *scalar, bool later,
                              ncclRedOp_t *op);

/** No such operation: ncclInvalidArgument. Queued operations still use it. */
ncclResult_t kl_userop_destroy(struct ncclComm *comm, ncclRedOp_t op);

/** The calls so far are launched, in so many launches as they need: operations destroyed meanwhile are in use until these end. */
void kl_userops_note_launches(struct ncclComm *comm);

/** A task with an operation that is not built in: find it. Unknown, or of another type: ncclInvalidArgument. */
ncclResult_t kl_userop_resolve(struct ncclComm *comm, struct kl_task *task, const char *function);

void kl_userops_fini(struct kl_userops *ops);

#endif
