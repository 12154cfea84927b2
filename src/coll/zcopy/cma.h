/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cma.h - Mapped (peer_direct.h) where buffers cannot be mapped, but the kernel copies between them (os/cma.h): a rank's share of the work,
 * piece by piece.
 *
 *                    each rank
 *      all-gather, all-to-all   reads what is for it from all others
 *      reduce-scatter           reads its part of all inputs, block by block, and reduces it
 *      all-reduce, reduce       reads and reduces its slice likewise, and writes it to all outputs, or to the root's
 *      broadcast                reads from the root, which writes the last of as many slices as there are ranks to all others meanwhile
 *
 * Everybody moves as many bytes, so that all CPUs help. Blocks are small enough to stay in a core's cache from one step to the next.
 */
#ifndef KL_COLL_ZCOPY_CMA_H
#define KL_COLL_ZCOPY_CMA_H

#include "coll/pipeline/algorithm.h"
#include "coll/zcopy/peer_buffer.h"
#include "os/cma.h"

/** Where a rank's buffers are: addresses in its own memory. */
struct kl_cma_buffers {
    struct kl_cma_process owner;
    uint64_t at[KL_PEER_BUFFER_BUFFERS];
};

struct kl_cma_work {
    const struct kl_channel_work *share;
    int rank, nranks;
    const struct kl_cma_buffers *far; /* by rank, as: */
    struct kl_cma_cache *seen;
    char *scratch;  /* kl_cma_scratch_bytes */
    int taken;      /* other ranks that are done with, */
    size_t moved;   /* and bytes of the next one, or of the slice; */
    size_t reduced; /* behind these, so many lie reduced in the scratch, and may have been written to some */
    int lost;       /* the rank whose memory cannot be reached */
};

size_t kl_cma_scratch_bytes(int nranks);

enum kl_cma_progress { KL_CMA_MORE, KL_CMA_DONE, KL_CMA_LOST };

/** Work on the next piece, between kl_arena_touch and kl_arena_untouch. LOST: a rank's memory is out of reach; repair.h does the rest. */
enum kl_cma_progress kl_cma_work(struct kl_cma_work *work);

/** Its progress, as posted to all ranks. */
struct kl_cma_left {
    bool lost; /* else there is nothing left */
    int32_t taken;
    uint64_t moved, reduced;
};

/** Bytes of what is reduced, or of what the root sends, that are a rank's. */
struct kl_cma_slice {
    size_t at, end;
};
struct kl_cma_slice kl_cma_slice(const struct kl_cma_work *work, int rank);

#endif
