/* SPDX-License-Identifier: Apache-2.0 */
/**
 * subgroup.h - exchanges among some ranks of a communicator: a broadcast and an all-gather, in O(log n) steps.
 *
 * Each rank of the list calls with the same list, which is ascending, and the same arguments but for its own data. Several
 * exchanges may follow each other; messages between two ranks stay in order.
 *
 * Errors:  those of the bootstrap; ncclInternalError for more bytes than any rank sends.
 * Threads: as the bootstrap's.
 */
#ifndef KL_COMM_SETUP_SUBGROUP_H
#define KL_COMM_SETUP_SUBGROUP_H

#include "bootstrap/bootstrap.h"

#include <stdint.h>

/** The ranks of an exchange, and this rank's place among them. */
struct kl_subgroup {
    struct kl_bootstrap *bootstrap;
    const int32_t *rank;
    int n, own;
};

/**
 * The rank in place `root` sends the others `*bytes` at `*data`, which they receive in fresh memory (free() it),
 * followed by a zero byte.
 */
ncclResult_t kl_subgroup_broadcast(const struct kl_subgroup *subgroup, int root, void **data, size_t *bytes);

/**
 * Each rank has a block of block[i] bytes, in the order of the list: `all` receives them one after the other; its own
 * block is in place.
 */
ncclResult_t kl_subgroup_allgather(const struct kl_subgroup *subgroup, void *all, const size_t *block);

#endif
