/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.h - one kernel's share of an operation, for C and CUDA; passed by value, so that a launch needs no memory.
 *
 * Addresses are the GPU's, 0 for none. The grid's second dimension counts parts, its third destinations:
 *     reduction        out[*] = all inputs, merged in the order of ranks, `count` elements
 *     scattered one    part p is `stride` bytes behind part p - 1 in every input, and only out[p] gets it
 *     gather           in[p], `count` bytes, to every out + p * stride
 *     exchange         in[p] + d * stride, `count` bytes, to out[d] + p * stride, and the same in the other direction
 * An output may be an input exactly, or the same part of one; other overlap is not allowed. The two directions of an
 * exchange are one thread's, which reads before it writes.
 */
#ifndef KL_COLL_GPU_JOB_H
#define KL_COLL_GPU_JOB_H

#include <stdint.h>

enum {
    KL_JOB_RANKS = 128, /* so that a job fits in 4 KiB, the parameters of a kernel on any GPU */
    KL_JOB_THREADS = 512
};

struct kl_gpu_job {
    uint64_t in[KL_JOB_RANKS], out[KL_JOB_RANKS];
    uint64_t scale[KL_JOB_RANKS]; /* factor of an input: bits of a float, a double or an integer, or its address */
    uint64_t scale_there[KL_JOB_RANKS / 64]; /* bit r: scale[r] is the address of an element */
    uint64_t own[KL_JOB_RANKS / 64];         /* of an exchange, bit r: rank r is this GPU's */
    uint64_t over; /* of a 32-bit word: other than 0, the communicator has failed, and the kernel does nothing */
    uint64_t count, stride;
    uint32_t ranks;
    uint32_t divisor;   /* of a mean of integers */
    uint32_t scattered; /* of reductions */
    uint32_t unit;      /* bytes that all addresses and strides are multiples of: 16, 8, 4, 2 or 1 */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct kl_gpu_job) <= 4096, "the parameters of a kernel");
#endif

#endif
