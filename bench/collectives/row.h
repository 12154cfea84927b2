/* SPDX-License-Identifier: Apache-2.0 */
/**
 * row.h - a row: an operation on a number of floats, its inputs and expected results.
 *
 * Sizes:    bytes as nccl-tests counts them: for all_gather the result, for reduce_scatter a rank's input, for alltoall a rank's
 *           buffer, else the buffer. Pieces have at least one element.
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

/** This rank's input; broadcasts are in place, so the root's is in `recv`. NULL: none. */
float *row_input(const struct row *row, int rank, float *send, float *recv);
void row_fill(const struct row *row, int rank, unsigned version, float *input);
/** Overwrite the places of the result with wrong values. */
void row_spoil(const struct row *row, int rank, float *recv);
/** How many elements are wrong, of all of them, or of a quarter of a million spread over them. */
size_t row_wrong(const struct row *row, int rank, unsigned version, const float *recv);

#ifdef __cplusplus
}
#endif
#endif
