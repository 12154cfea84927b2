/* SPDX-License-Identifier: Apache-2.0 */
/** perf.h - what the benchmark of a collective says about it; main.cu does the rest. */
#ifndef EXAMPLES_PERF_H
#define EXAMPLES_PERF_H

#include "../check.h"

/** What a rank passes in a call. `count` is that of the collective's own function. */
struct call {
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root, rank, ranks;
    ncclComm_t comm;
    cudaStream_t stream;
    size_t element; /* bytes */
};

enum { FROM_ALL = -1 };

/**
 * A collective, in chunks of `count` elements: a rank's input has some of them, and its output, and each chunk of the output is a chunk of somebody's
 * input, or of all ranks' inputs reduced.
 */
struct collective {
    const char *name;
    bool reduces, has_root;
    bool divided;           /* the size in the table is that of a chunk for each rank */
    bool many_in, many_out; /* a chunk for each rank, else one */
    bool in_place;          /* if one of the buffers has one chunk, that is the rank's own in the other */
    int (*source_rank)(int chunk, int me, int root, int ranks); /* of a chunk of the output; FROM_ALL: reduced */
    int (*source_chunk)(int chunk, int me);                     /* which one of that rank's input */
    double (*bus)(int ranks);                                   /* bus bandwidth / algorithm bandwidth */
    ncclResult_t (*run)(const call &c);
    bool to_root = false; /* only the root has an output */
};

extern const collective benchmark; /* of this program */

#endif
