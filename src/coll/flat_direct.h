/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flat_direct.h - Flat for large all-to-alls: nothing is staged. What a rank posts is where its data are, and others read them there
 * (os/peer_memory.h), each in its own time: of ranks that share cores none waits for a hand-over per piece, and what is not for a
 * rank it does not copy.
 *
 *      turn      all post their send buffers    read what is theirs
 *      at last   all wait until all are done: their buffers may be reused
 *
 * Other functions gain nothing by it: what all read is faster read from a slot that stays in the cache.
 */
#ifndef KL_COLL_FLAT_DIRECT_H
#define KL_COLL_FLAT_DIRECT_H

#include "coll/flat_op.h"

enum {
    KL_FLAT_MOST = 1 << 20,
    KL_FLAT_STAGED =
        8 << 10, /* bytes for each rank: up to these a board is faster than messages, whoever the ranks are */
    KL_FLAT_DIRECT =
        160 << 10 /* bytes for all ranks: up to these staging is faster than system calls (2 cores, 3 to 8 ranks) */
};

/** Is the operation worth it, and possible? All ranks answer alike. The ranks have met. */
bool kl_flat_is_direct(const struct kl_board *board, const struct kl_share *share);

/** What this rank posts. */
void kl_flat_post_address(const struct kl_flat_op *op);

/** Read some more of what is posted by all. True: nothing is left. *rc is set on failure. */
bool kl_flat_read_some(struct kl_flat_op *op, ncclResult_t *rc);

#endif
