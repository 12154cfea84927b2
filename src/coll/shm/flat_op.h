/* SPDX-License-Identifier: Apache-2.0 */
/** flat_op.h - what Flat (flat.h) remembers of an operation; for its files only. */
#ifndef KL_COLL_SHM_FLAT_OP_H
#define KL_COLL_SHM_FLAT_OP_H

#include "coll/pipeline/algorithm.h"
#include "coll/shm/shm_exchange.h"

/** Rounds of a piece, in this order; most have the first only. */
enum kl_flat_stage {
    KL_FLAT_BRING,  /* ranks post what they bring */
    KL_FLAT_ACROSS, /* what the ranks of their core bring together, for those of other cores */
    KL_FLAT_TELL    /* their slices of the result */
};

struct kl_flat_op {
    struct kl_shm_exchange *shm;
    const struct kl_channel_work *share;
    size_t parts;      /* that a rank posts at a time */
    size_t most;       /* elements of a piece, of a part where there are parts */
    size_t first;      /* where the piece begins, */
    size_t piece;      /* elements of it, */
    size_t bytes;      /* of its posted part, but for slices */
    bool keeps;        /* it merges its own part from where that was */
    bool brings;       /* it has data for others; if not, it posts all the same, so that another call is noticed */
    bool slices;       /* of the piece each rank merges its own, */
    bool hierarchical; /* first with ranks of its core, then with the results of other cores */
    enum kl_flat_stage stage;
    bool posted; /* this rank has, in this round */
    int sources; /* ranks whose posts of this round it takes, */
    int arrived; /* of which so many are here */
};

#endif
