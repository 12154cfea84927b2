/* SPDX-License-Identifier: Apache-2.0 */
/**
 * mend.h - what is missing of a collective by the kernel's copies (read_work.h), when the kernel stops copying in the middle: it goes over the board
 * (board.h), piece by piece.
 *
 * All know how far each has come. From that all derive the same pieces, one for each turn: a rank gives bytes, or all give the inputs of a reduction,
 * and who lacks them takes them.
 *
 *                    missing of a rank that was stopped
 *      all-gather, all-to-all   the parts of the ranks that it has not read
 *      reduce-scatter           the rest of its part
 *      all-reduce, reduce       the rest of its slice, at all that receive; first the block that it has reduced, and may have written to some
 *      broadcast                the rest of what ranks read from the root, and the slice that the root writes
 *
 * Inputs of what is missing are as they were, also in place: an output is written by one rank only, in its slice and in order, once all of the block's inputs
 * have been read.
 *
 * Threads: one at a time. Allocates nothing, never waits.
 */
#ifndef KL_COLL_MEND_H
#define KL_COLL_MEND_H

#include "coll/read_work.h"

/** What a turn moves. */
struct kl_mend_piece {
    bool reduces;   /* all give an input; else */
    int from;       /* this rank gives, */
    bool reduced;   /* from its scratch */
    int to;         /* who takes; -1: all that receive */
    size_t at, put; /* where it is among what is sent (or in the scratch), and where it belongs */
    size_t bytes;   /* 0: there is no more */
};

struct kl_mend {
    const struct kl_read_work *work; /* of this rank */
    const struct kl_read_left *left; /* by rank */
    size_t most;                     /* bytes of a piece */
    int of;                          /* whose rest is under way, */
    struct kl_read_left now;         /* and how far */
    struct kl_mend_piece piece;
};

/** `most`: bytes of a piece, a multiple of KL_LINE. The first piece is there then. */
void kl_mend_start(struct kl_mend *mend, const struct kl_read_work *work, const struct kl_read_left *left, size_t most);

/** On to the next piece. */
void kl_mend_next(struct kl_mend *mend);

/** Put what this rank gives to the piece, if anything, where it is posted. */
void kl_mend_give(const struct kl_mend *mend, void *post);

/** Take it, if this rank lacks it; `posts` by rank. */
void kl_mend_take(const struct kl_mend *mend, const void *const *posts);

#endif
