/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls_job.h - collectives over a multicast object (NVLS), for C and CUDA; the job is passed by value.
 *
 * Memory:   each GPU has a copy of a *set*, at the same place of the object: counters, then rooms for data. A kernel uses
 *           its own copy by ordinary accesses, and all copies at once by multimem accesses: a store writes to all, a load
 *           reduces the contents of all.
 * Meetings: block b of each GPU meets the blocks b of the others: each adds 1 to the block's counter in all copies, and
 *           waits until its own copy shows that all have. Meetings are counted over all operations (*epochs*, in a
 *           circle), by each GPU in its own copy; a counter is `ranks` times its block's epoch.
 * Rooms:    each block has one in each of two halves. Between meetings e and e + 1 all data are read in half e % 2 and
 *           written in half (e + 1) % 2. So a write comes behind a meeting that follows all reads in that half, and a
 *           read behind one that follows all writes there. An operation ends with an arrival, for which the next one of
 *           the block waits first.
 * Chunks:   of a part (`piece` bytes) are the blocks' in turn. In a room, parts are `piece` bytes apart.
 */
#ifndef KL_COLL_GPU_NVLS_JOB_H
#define KL_COLL_GPU_NVLS_JOB_H

#include <stdint.h>

enum {
    KL_NVLS_UNIT = 16, /* bytes of a thread's access */
    KL_NVLS_BLOCKS = 32,
    KL_NVLS_THREADS = 512,
    KL_NVLS_COUNTER = 64,  /* bytes from one to the next */
    KL_NVLS_EPOCHS = 2048, /* 32 bits for each block, behind the counters */
    KL_NVLS_HEAD = 4096,
    KL_NVLS_ROOM = (128 << 10) - 64, /* bytes, so that a set has 8 MiB */
    KL_NVLS_SET = KL_NVLS_HEAD + 2 * KL_NVLS_BLOCKS * KL_NVLS_ROOM
};

struct kl_nvls_job {
    uint64_t own, all;   /* the set: the GPU's own copy, and all copies */
    uint64_t stop;       /* a word of the host; not 0: wait no longer */
    uint64_t send, recv; /* buffers, at any address; 0: the rank contributes nothing, or gets nothing */
    uint64_t bytes;      /* of a part */
    uint64_t piece;      /* of a chunk, in whole units */
    uint64_t factor;     /* of this rank's contribution: as in kl_gpu_job */
    uint32_t factor_there;
    uint32_t ranks, rank;
    uint32_t parts;   /* of the larger buffer: one for each rank, or 1 */
    uint32_t part;    /* that this rank reduces, or sends */
    uint32_t spread;  /* an all-reduce: each rank reduces a slice, for all */
    uint32_t divisor; /* of a mean of integers */
};

#ifndef __cplusplus
_Static_assert(KL_NVLS_BLOCKS *KL_NVLS_COUNTER <= KL_NVLS_EPOCHS, "counters end before the epochs");
_Static_assert(KL_NVLS_EPOCHS + 4 * KL_NVLS_BLOCKS <= KL_NVLS_HEAD, "epochs end before the rooms");
_Static_assert(KL_NVLS_ROOM % (2 * KL_NVLS_UNIT) == 0 && KL_NVLS_SET == 8 << 20, "halves of rooms have whole units");
#endif

#endif
