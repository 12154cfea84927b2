/* SPDX-License-Identifier: Apache-2.0 */
/** options.h - the command line, with the letters of nccl-tests. */
#ifndef EXAMPLES_PERF_OPTIONS_H
#define EXAMPLES_PERF_OPTIONS_H

#include "perf.h"

#include <vector>

struct named_type {
    const char *name;
    ncclDataType_t type;
};

struct named_op {
    const char *name;
    ncclRedOp_t op;
};

struct options {
    size_t first = 32 << 20, last = 32 << 20, step = 1 << 20,
           factor = 1;         /* of sizes: times the factor, or plus the step if that is 1 */
    int gpus = 1, threads = 1; /* of a thread, of a process */
    int iterations = 20, warmup = 1, check = 1, root = 0;
    std::vector<named_type> types; /* one, or all */
    std::vector<named_op> ops;
};

/** Ends the program with a text if something is wrong, or help was asked for. */
options read_options(int argc, char **argv, const char *name);

#endif
