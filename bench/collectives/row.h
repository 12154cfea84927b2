/* SPDX-License-Identifier: Apache-2.0 */
/**
 * row.h - what is measured: an operation on so many floats. What is put in, and what has to come out.
 *
 * Sizes:    bytes as nccl-tests counts them: of all_gather what is gathered, of reduce_scatter what a rank gives, of alltoall what a rank
 *           holds, else the buffer. Pieces have at least one element.
 * Contents: small whole numbers, so that sums of 64 ranks are exact; they depend on rank, place and version.
 */
#ifndef KOLO_BENCH_ROW_H
#define KOLO_BENCH_ROW_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum row_op {
    ROW_ALL_REDUCE,
    ROW_ALL_GATHER,
    ROW_REDUCE_SCATTER,
    ROW_BROADCAST,
    ROW_REDUCE,
    ROW_ALLTOALL,
    ROW_SENDRECV,
    ROW_OPS
};

struct row {
    enum row_op op;
    int nranks;
    size_t asked;   /* bytes, as it was asked for: the same for all ranks and libraries */
    size_t count;   /* elements of the buffer, or of a piece where there is one for each rank */
    size_t in, out; /* elements that a rank gives and gets, at most */
    size_t bytes;   /* really */
};

/** "all_reduce:1048576". False: not such a text. */
bool row_parse(struct row *row, const char *text, int nranks);
const char *row_name(enum row_op op);

/** What this rank gives; broadcasts are done in place, so the root's lies in `recv`. NULL: nothing. */
float *row_input(const struct row *row, int rank, float *send, float *recv);
void row_fill(const struct row *row, int rank, unsigned version, float *input);
/** Spoil what the operation has to write. */
void row_spoil(const struct row *row, int rank, float *recv);
/** How many elements are wrong, of all of them, or of a quarter of a million spread over them. */
size_t row_wrong(const struct row *row, int rank, unsigned version, const float *recv);

#ifdef __cplusplus
}
#endif
#endif
