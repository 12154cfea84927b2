/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flags_job.h - parameters of kernels that meet the kernels of other GPUs, for C and CUDA; passed by value.
 *
 * A meeting: each GPU stores its epoch into a flag of every other GPU, and waits until all others have stored theirs.
 * Lines:     every rank has a slot for each sender's messages in each of two halves, which take turns. A unit of 8 bytes is a
 *            line of 16: two words of 4 bytes of data, in the low half, and the epoch. Block b moves the units from
 *            b * KL_LINES_BLOCK on, by its own epoch; it has a line from each rank in every operation, so that no rank
 *            is two operations ahead.
 * Epochs are in the GPU's own memory, count in a circle, and are alike on all GPUs.
 */
#ifndef KL_COLL_GPU_FLAGS_JOB_H
#define KL_COLL_GPU_FLAGS_JOB_H

#include <stdint.h>

enum {
    KL_FLAGS_GPUS = 64,
    KL_FLAGS_THREADS = 64, /* of a block that meets */
    KL_FLAGS_POLLS = 4096, /* between looks at the stop word */
    KL_LINES_UNIT = 8,
    KL_LINES_LINE = 16,
    KL_LINES_BLOCK = 64, /* units, and threads at most */
    KL_LINES_RENEWED =
        1 << 24 /* operations after which all lines of a block are written, so that none has an old epoch */
};

struct kl_meet_job {
    uint64_t flags[KL_FLAGS_GPUS]; /* of each GPU: its flags, 32 bits for each other one */
    uint64_t epoch;                /* the GPU's own */
    uint64_t stop;                 /* a word of the host; not 0: wait no longer */
    uint32_t gpus, own;
};

struct kl_lines_job {
    uint64_t lines[KL_FLAGS_GPUS]; /* by rank: its lines, as this GPU sees them */
    uint64_t epochs;               /* the GPU's own, 32 bits for each block */
    uint64_t stop;
    uint64_t send, recv;               /* buffers, at any address */
    uint64_t send_stride, recv_stride; /* bytes between the parts for, or from, the ranks; 0: one for all */
    uint64_t bytes;                    /* of a message, of which each sender has one for each receiver */
    uint64_t senders, receivers;       /* bit r: rank r */
    uint64_t factor;                   /* of this rank's contribution: as in kl_gpu_job */
    uint32_t factor_there;
    uint32_t units; /* of a slot */
    uint32_t ranks, rank;
    uint32_t divisor; /* of a mean of integers */
};

#endif
