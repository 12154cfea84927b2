/* SPDX-License-Identifier: Apache-2.0 */
/**
 * among.h - exchanges among some ranks of a communicator: one tells the others, or all tell all, in O(log n) steps.
 *
 * Each rank of the list calls with the same list, which is ascending, and the same arguments but for its own data. Several
 * exchanges may follow each other; messages between two ranks stay in order.
 *
 * Errors:  those of the bootstrap; ncclInternalError for more bytes than any rank sends.
 * Threads: as the bootstrap's.
 */
#ifndef KL_COMM_AMONG_H
#define KL_COMM_AMONG_H

#include "bootstrap/bootstrap.h"

#include <stdint.h>

/** Ranks that talk to each other, and which of them this one is. */
struct kl_among {
    struct kl_bootstrap *bootstrap;
    const int32_t *rank;
    int n, own;
};

/**
 * The one in place `root` tells the others `*bytes` at `*data`, which the others receive in fresh memory (free() it), with a
 * zero behind.
 */
ncclResult_t kl_among_tell(const struct kl_among *among, int root, void **data, size_t *bytes);

/**
 * Everybody has a block of block[i] bytes, in the order of the list: `all` receives them one after the other, the own one is
 * in place.
 */
ncclResult_t kl_among_gather(const struct kl_among *among, void *all, const size_t *block);

#endif
