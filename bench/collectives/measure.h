/* SPDX-License-Identifier: Apache-2.0 */
/**
 * measure.h - measures rows with one library: the same loops, clocks and checks for all of them.
 *
 * A row is checked before and after it is timed. It is timed in blocks; between blocks is a barrier (area.h). The time of a block is
 * its slowest rank's; the result is the median over blocks, divided by the operations of a block. With --fresh each rank writes
 * its input anew before each operation, which is timed by itself, from a barrier to its end. Before the first block and after the last the
 * distance of the cores is measured (cores.h); where it changed meanwhile, the blocks are timed again, up to two times.
 *
 * One line of JSON for each row, from rank 0: us (median), least, most, mean and p99 are over blocks; wrong counts elements of both checks on all ranks;
 * exchange_ns is the mean of both distances (0: not known), mixed: they still differ.
 */
#ifndef KOLO_BENCH_MEASURE_H
#define KOLO_BENCH_MEASURE_H

#include "bench/collectives/area.h"
#include "bench/collectives/row.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A library, for one rank. A failure prints a message and ends the process. */
struct peer {
    void *state;
    /** One operation. `send` and `recv` are the same for every operation of the row. `counts`: the result is checked. */
    void (*issue)(void *state, const struct row *row, float *send, float *recv, bool counts);
    /** All that was issued is done. NULL: it is when `issue` returns. */
    void (*finish)(void *state);
    /** Memory for a buffer, never given back. NULL: pages of the process. */
    void *(*allocate)(void *state, size_t bytes);
};

struct measure_options {
    const char *name; /* printed with each row */
    double budget_s;  /* a row is timed for about that long */
    int blocks;       /* in so many blocks, if the row is fast enough */
    int operations;   /* of a block; 0: as many as the budget allows */
    bool fresh;
    bool pin; /* rank r to CPU r modulo their number */
    int nrows;
    char **rows; /* row_parse */
};

/** `--name TEXT --ms N --blocks N --operations N --fresh --pin ROW ...`, without the options that the caller has removed. Ends the process if the arguments are wrong. */
struct measure_options measure_parse(int argc, char **argv);

void measure_pin(const struct measure_options *options, int rank);
void measure(const struct measure_options *options, struct area_end *end, const struct peer *peer);

#ifdef __cplusplus
}
#endif
#endif
