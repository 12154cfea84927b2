/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_direct.h - the algorithm that users see as Mapped: a resumable collective of ranks that can all reach each other's buffers: nothing is staged, nothing is copied twice.
 *
 *                    each rank
 *      all-gather, all-to-all   copies what is for it from all others
 *      reduce-scatter           reduces its part of all inputs
 *      all-reduce               reduces its slice of all inputs, into all outputs
 *      reduce                   the same, into the root's
 *      broadcast                copies its slice of the root's into all outputs
 *
 * So the work is divided evenly, also where only one rank receives. Before the work all ranks exchange the places of their buffers
 * (peer_buffer.h) through shared memory (shm_exchange.h); after it they wait for each other. If a rank has buffers that others cannot map, the kernel copies
 * (cma.h), provided that the selection table says so (select/select.h) and all ranks permit it; else the operation is declined: it is done another way, and
 * no buffer has been accessed. Before its first kernel copy each rank tests whether the kernel permits it. If the kernel refuses later, in the middle, all
 * ranks learn that at the end, and the missing data go through shared memory (repair.h).
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

/* Bytes, as the tuner counts them: below, staged data travel with their flag. */
enum { KL_PEER_DIRECT_LEAST = KL_SELECT_COLLECTIVE };

/** A rank's post: its buffers, and whether the kernel may copy from them. */
struct kl_peer_direct_info {
    struct kl_peer_buffer_info buffers;
    struct kl_cma_buffers far; /* if it is readable */
    bool readable;
};

/** A rank's state for such operations, kept from one to the next. */
struct kl_peer_direct {
    struct kl_shm_exchange shm;
    struct kl_peer_buffers buffers;
    struct kl_arena_mark *mark;
    char *scratch; /* kl_cma_scratch_bytes */
    bool broken;   /* a rank could not map an exported buffer */
    bool proved;   /* all ranks have read in the memory of all others */
    struct kl_peer_buffer_info info[KL_SHM_EXCHANGE_RANKS];
    struct kl_cma_buffers far[KL_SHM_EXCHANGE_RANKS]; /* of the operation, by rank: where buffers are there, */
    char *send[KL_SHM_EXCHANGE_RANKS], *recv[KL_SHM_EXCHANGE_RANKS]; /* and here */
    struct kl_cma_cache seen[KL_SHM_EXCHANGE_RANKS];                 /* of their memory, by rank; */
    struct kl_cma_left left[KL_SHM_EXCHANGE_RANKS]; /* parts of the operation that the kernel has not copied */
};

enum kl_peer_direct_stage {
    KL_PEER_DIRECT_INFO,
    KL_PEER_DIRECT_HANDLES,
    KL_PEER_DIRECT_VERDICTS,
    KL_PEER_DIRECT_WORK,
    KL_PEER_DIRECT_LEFT, /* after the kernel's copies: exchange the progress */
    KL_PEER_DIRECT_REPAIR,
    KL_PEER_DIRECT_END
};

struct kl_peer_direct_op {
    struct kl_peer_direct *peer_direct;
    struct kl_peer_direct_work work;
    struct kl_cma_work cma;
    struct kl_repair repair;
    enum kl_peer_direct_stage stage;
    bool posted;   /* this rank has, in this stage */
    int arrived;   /* ranks whose posts of it are here */
    bool all;      /* of those that have arrived can */
    bool fresh;    /* one of them has an allocation that others do not know */
    bool failed;   /* this rank could not map something, or read it */
    bool readable; /* so are all that have arrived */
    uint64_t deadline;
    struct kl_cma_left left; /* not copied by the kernel for this rank */
    enum kl_agreed agreed;
};

void kl_peer_direct_start(struct kl_peer_direct_op *op, struct kl_peer_direct *peer_direct,
                          const struct kl_channel_work *share);

/** Go on; DONE when this rank's part is complete, or the operation is declined: see `agreed`. *rc is set on failure, with DONE. */
enum kl_progress kl_peer_direct_progress(struct kl_peer_direct_op *op, ncclResult_t *rc);

/** A rank that a stalled operation waits for; with `gone`, only one that has left. -1: none. */
int kl_peer_direct_blocked_on(struct kl_peer_direct_op *op, bool gone);

#endif
