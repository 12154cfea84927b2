/* SPDX-License-Identifier: Apache-2.0 */
/**
 * repair.h - completes a collective by the kernel's copies (cma.h) when the kernel refuses to copy in the middle:
 * the rest goes through shared memory (shm_exchange.h), piece by piece.
 *
 * All ranks know the progress of each. From that all derive the same pieces, one for each round: a rank posts bytes, or
 * all post the inputs of a reduction, and the ranks that lack them take them.
 *
 * missing data of a rank that was stopped
 *      all-gather, all-to-all   the parts of the ranks that it has not read
 *      reduce-scatter           the rest of its part
 *      all-reduce, reduce       the rest of its slice, at all that receive; first the block that it has reduced, and may have written to some
 *      broadcast                the rest of the data that ranks read from the root, and the slice that the root writes
 *
 * The inputs of missing parts are unchanged, also in place: an output is written by one rank only, in its slice and in
 * order, once all of the block's inputs have been read.
 *
 * Threads: one at a time. Allocates nothing, never waits.
 */
#ifndef KL_COLL_ZCOPY_REPAIR_H
#define KL_COLL_ZCOPY_REPAIR_H

#include "coll/zcopy/cma.h"

/** The data that a round moves. */
struct kl_repair_piece {
    bool reduces;   /* all give an input; else `from` gives */
    int from;       /* the rank that gives */
    bool reduced;   /* it gives from its scratch */
    int to;         /* the rank that takes; -1: all that receive */
    size_t at, put; /* offset in the send buffer (or in the scratch), and offset in the receive buffer */
    size_t bytes;   /* 0: there is no more */
};

struct kl_repair {
    const struct kl_cma_work *work; /* of this rank */
    const struct kl_cma_left *left; /* by rank */
    size_t most;                    /* bytes of a piece */
    int of;                         /* the rank whose rest is in progress */
    struct kl_cma_left now;         /* its progress */
    struct kl_repair_piece piece;
};

/** `most`: bytes of a piece, a multiple of KL_LINE. Computes the first piece. */
void kl_repair_start(struct kl_repair *repair, const struct kl_cma_work *work, const struct kl_cma_left *left,
                     size_t most);

/** On to the next piece. */
void kl_repair_next(struct kl_repair *repair);

/** Write this rank's contribution to the piece, if any, into its post. */
void kl_repair_post(const struct kl_repair *repair, void *post);

/** Take the piece, if this rank lacks it; `posts` by rank. */
void kl_repair_take(const struct kl_repair *repair, const void *const *posts);

#endif
