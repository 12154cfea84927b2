/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rows.h - schedules as data that kernels follow, for C and CUDA.
 *
 * A *row* is a hop (coll/schedule/schedule.h) whose places are resolved: part p of a buffer begins `count` elements behind
 * part p - 1, chunk c of a loop begins c chunks behind the loop. A *program* is the rows of a rank on a channel; one block
 * of a grid follows it. The grid's first dimension counts the GPU's ranks, the second one channels.
 *
 * The slots of a fifo lie in memory of the receiver's GPU. Each side polls a word in its own GPU's memory, and tells the
 * other side there: the sender that chunks are ready, the receiver that slots are free. Lines (LL, LL128) carry flags:
 * their sender tells nothing. Steps are kept in memory from one kernel to the next.
 *
 * Addresses are as GPUs see them.
 */
#ifndef KL_COLL_GPU_ROWS_H
#define KL_COLL_GPU_ROWS_H

#include "coll/gpu/job.h"

enum {
    KL_ROW_EDGES = 8, /* of each direction: PAT has one for each bit of a rank */
    KL_ROW_LANES = 2,
    KL_ROW_LEAST_THREADS = 32, /* of a lane: whole warps, of which the first threads poll an edge each */
    KL_LINE_LL = 16,           /* bytes of a line, and of its data */
    KL_LINE_LL_DATA = 8,
    KL_LINE_LL128 = 128,
    KL_LINE_LL128_DATA = 120,
};

/** Actions, as in enum kl_hop_action. */
enum { KL_ROW_REDUCE = 1, KL_ROW_FIRST = 2, KL_ROW_FINISH = 4, KL_ROW_KEEP = 8 };

struct kl_gpu_row {
    uint32_t recv, send; /* bits: edges */
    uint32_t actions;
    uint32_t own_part, own_chunk;
    uint32_t result_part, result_chunk;
    uint32_t unused;
};

/** One end of a fifo. */
struct kl_gpu_end {
    uint64_t slots; /* where they are */
    uint64_t poll;  /* the word of this side: chunks that the other side has done */
    uint64_t tell;  /* the word of the other side */
    uint64_t step;  /* chunks that this side has done */
};

struct kl_gpu_ends {
    struct kl_gpu_end recv[KL_ROW_EDGES], send[KL_ROW_EDGES];
};

struct kl_gpu_program {
    uint64_t ends; /* a struct kl_gpu_ends */
    uint64_t row[KL_ROW_LANES];
    uint32_t rows[KL_ROW_LANES]; /* of a loop */
    uint32_t rank, lanes;
    uint32_t chunks; /* of a loop */
    uint32_t unused;
};

/** An operation on a GPU; passed by value. Numbers are elements unless they say bytes. */
struct kl_gpu_schedule {
    struct kl_gpu_job job;      /* in and out: whole buffers by rank; count: of a part */
    uint64_t programs;          /* struct kl_gpu_program by channel, then by rank of this GPU */
    uint64_t stop;              /* a word of 32 bits; not 0: the kernel ends, with its work undone */
    uint64_t lo, mid, hi;       /* of the first channel, of each further one, and of the last one if it is not 0 */
    uint64_t most;              /* of a chunk */
    uint64_t grain;             /* chunks of one loop are multiples of it */
    uint64_t slice;             /* that a slot holds; chunks are cut in slices */
    uint32_t slots, slot_bytes; /* of a fifo: a power of two */
    uint32_t line_bytes;        /* of the protocol's lines: LL, LL128; 0: Simple, with slots */
    uint32_t unused;
};

#ifndef __cplusplus
_Static_assert(sizeof(struct kl_gpu_row) == 32, "two loads of 16 bytes");
_Static_assert(sizeof(struct kl_gpu_schedule) <= 4096, "the parameters of a kernel");
#endif

#endif
