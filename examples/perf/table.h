/* SPDX-License-Identifier: Apache-2.0 */
/** table.h - what the benchmark prints. */
#ifndef EXAMPLES_PERF_TABLE_H
#define EXAMPLES_PERF_TABLE_H

#include "options.h"

/** Of one size, out of place or in place. */
struct measured {
    bool possible;
    double us, algbw, busbw; /* GB/s */
    double wrong;            /* elements of all ranks; negative: not checked */
};

void print_head(const options &o);
void print_devices(const char *lines, int ranks, size_t width);
void print_columns(void);
void print_row(size_t bytes, size_t count, const char *type, const char *op, int root, const measured m[2]);
void print_foot(double wrong, double bandwidth);

#endif
