/* SPDX-License-Identifier: Apache-2.0 */
/**
 * children.h - communicators made from others: some ranks of one, by colour or without excluded ones.
 *
 * A child has a bootstrap of its own, derived from the parent's (kl_bootstrap_derive), and is then set up like any
 * other. It shares nothing with its parent, which may go or fail afterwards.
 *
 * Each is a job of the parent (job.h), and ends it: the parent must not be accessed afterwards.
 *
 * Threads: the job's.
 */
#ifndef KL_COMM_SETUP_CHILDREN_H
#define KL_COMM_SETUP_CHILDREN_H

#include "comm/job.h"

/** The request for a child, with its configuration. */
struct kl_child {
    struct ncclComm *parent;
    struct kl_nccl_config nccl_config;
    ncclComm_t *user; /* written when the child is complete */
};

/**
 * Every rank of the parent calls it. Ranks of the same colour become a communicator, in the order of `key` and of their
 * ranks;
 * NCCL_SPLIT_NOCOLOR: none, and success.
 */
ncclResult_t kl_comm_split(const struct kl_child *child, int color, int key);

/**
 * Called by all ranks of the parent that are not among the `nexcluded`, with the same list. The excluded ranks need not
 * live. With `abort`, the parent's pending work is cancelled first, and the parent cannot be used any more.
 */
ncclResult_t kl_comm_shrink(const struct kl_child *child, const int *excluded, int nexcluded, bool abort);

/** An id for the ranks that join the next communicator grown from this one; the last one counts. */
ncclResult_t kl_comm_create_grow_id(struct ncclComm *comm, ncclUniqueId *id);

/**
 * Every rank of the parent calls it, and keeps its number; `nranks` minus these join by the id as any rank does (with
 * numbers from there on). `id` NULL: another rank has it. No rank has one, or several do: ncclInvalidUsage.
 */
ncclResult_t kl_comm_grow(const struct kl_child *child, int nranks, const ncclUniqueId *id);

#endif
