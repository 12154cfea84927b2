/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_direct.h - a resumable collective of ranks that can all reach each other's buffers: nothing is staged, nothing is copied twice.
 *
 *                    each rank
 *      all-gather, all-to-all   copies what is for it from all others
 *      reduce-scatter           reduces its part of all inputs
 *      all-reduce               reduces its slice of all inputs, into all outputs
 *      reduce                   the same, into the root's
 *      broadcast                copies its slice of the root's into all outputs
 *
 * So the work is divided evenly, also where only one rank receives. All meet before, on a board (shm_exchange.h), to say where their buffers are
 * (peer_buffer.h), and after, when all is done. If one of them has buffers that others cannot map, all hear it. Then the kernel copies, and the work is that
 * of cma.h, if the table says so (select/select.h), and all let it; or else the operation is declined: it is done another way, and the
 * memory has not been looked at. Before the kernel copies for the first time, all try whether it does. Where it ceases to in the middle, all hear that in
 * the end, and the missing data go through shared memory (repair.h).
 *
 * Results:  as those of Flat: merged in the order of ranks.
 * Stores:   non-temporal where the share says so.
 * Aliasing: in place as NCCL defines it; buffers may be reused when the operation is DONE.
 * Errors:   ncclInvalidUsage when another rank came with another call; ncclRemoteError when one failed meanwhile.
 * Threads:  one at a time. Never blocks; allocates nothing but for an allocation that it has not seen.
 */
#ifndef KL_COLL_ZCOPY_PEER_DIRECT_H
#define KL_COLL_ZCOPY_PEER_DIRECT_H

#include "coll/pipeline/algorithm.h"
#include "coll/shm/shm_exchange.h"
#include "coll/zcopy/peer_buffer.h"
#include "coll/zcopy/peer_direct_work.h"
#include "coll/zcopy/repair.h"
#include "coll/zcopy/cma.h"

/* Bytes, as the tuner counts them: below, what is staged is there with the flag that tells of it. */
enum { KL_MAPPED_LEAST = KL_SELECT_COLLECTIVE };

/** What a rank says of itself, and of its buffers. */
struct kl_mapped_card {
    struct kl_peer_buffer_info lent;
    struct kl_read_far far; /* if it is readable */
    bool readable;
};

/** What a rank has for such operations, from one to the next. */
struct kl_mapped {
    struct kl_shm_exchange board;
    struct kl_peer_buffers lent;
    struct kl_arena_mark *mark;
    char *scratch; /* kl_read_scratch_bytes */
    bool broken;   /* somebody could not map what was lent */
    bool proved;   /* all have read in all others' memory */
    struct kl_peer_buffer_info card[KL_SHM_EXCHANGE_RANKS];
    struct kl_read_far far[KL_SHM_EXCHANGE_RANKS]; /* of the operation, by rank: where buffers are there, */
    char *send[KL_SHM_EXCHANGE_RANKS], *recv[KL_SHM_EXCHANGE_RANKS]; /* and here */
    struct kl_cma_cache seen[KL_SHM_EXCHANGE_RANKS];                 /* of their memory, by rank; */
    struct kl_read_left left[KL_SHM_EXCHANGE_RANKS]; /* parts of the operation that the kernel has not copied */
};

enum kl_mapped_stage {
    KL_MAPPED_CARDS,
    KL_MAPPED_TICKETS,
    KL_MAPPED_VERDICTS,
    KL_MAPPED_WORK,
    KL_MAPPED_LEFT, /* after the kernel's copies: what is left? */
    KL_MAPPED_REPAIR,
    KL_MAPPED_END
};

struct kl_mapped_op {
    struct kl_mapped *mapped;
    struct kl_mapped_work work;
    struct kl_read_work reading;
    struct kl_repair mend;
    enum kl_mapped_stage stage;
    bool posted;   /* this rank has, in this stage */
    int arrived;   /* ranks whose posts of it are here */
    bool all;      /* of those that have arrived can */
    bool fresh;    /* one of them has what others do not know */
    bool failed;   /* this rank could not map something, or read it */
    bool readable; /* so are all that have arrived */
    uint64_t deadline;
    struct kl_read_left left; /* what the kernel has not copied for this rank */
    enum kl_agreed agreed;
};

void kl_mapped_start(struct kl_mapped_op *op, struct kl_mapped *mapped, const struct kl_channel_work *share);

/** Go on; DONE when this rank's part is complete, or the operation is declined: see `agreed`. *rc is set on failure, with DONE. */
enum kl_progress kl_mapped_progress(struct kl_mapped_op *op, ncclResult_t *rc);

/** A rank that a stalled operation waits for; with `gone`, only one that has left. -1: none. */
int kl_mapped_blocked_on(struct kl_mapped_op *op, bool gone);

#endif
