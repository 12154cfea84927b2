/* SPDX-License-Identifier: Apache-2.0 */
/** verify.h - what ranks send, what they have to receive, and a count of what is otherwise: all on the device, in the order of a stream. */
#ifndef EXAMPLES_PERF_VERIFY_H
#define EXAMPLES_PERF_VERIFY_H

#include "perf.h"

/** Where numbers are, and which: `count` from element `first` of a rank's input on, in a job of so many ranks. */
struct numbers {
    size_t count, first;
    ncclDataType_t type;
    ncclRedOp_t op;
    int rank, ranks; /* FROM_ALL: of all ranks, reduced */
};

/** Bytes of an element; 0 for types that this benchmark does not have. */
size_t size_of(ncclDataType_t type);

/** Write the numbers to device memory. */
void put_numbers(void *to, const numbers &n, cudaStream_t stream);

/** Add to *wrong, in device memory, how many of the `n.count` elements at `got` are not those at `want`. */
void count_wrong(const void *got, const void *want, const numbers &n, unsigned long long *wrong, cudaStream_t stream);

#endif
