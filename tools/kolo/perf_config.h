/* SPDX-License-Identifier: Apache-2.0 */
/** perf_config.h - what a command line asks `kolo perf` to do. Options, defaults and meanings are those of nccl-tests. */
#ifndef KOLO_TOOL_PERF_CONFIG_H
#define KOLO_TOOL_PERF_CONFIG_H

#include "include/nccl.h"
#include "plan/collective.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum kl_perf_average { KL_AVERAGE_RANK0, KL_AVERAGE_MEAN, KL_AVERAGE_MIN, KL_AVERAGE_MAX };

struct kl_perf_config {
    const struct kl_coll *coll;

    uint64_t min_bytes, max_bytes, step_bytes;
    int step_factor; /* > 1: sizes are multiplied by it instead */
    int nthreads, ndevices;
    int iterations, warmups, aggregated, checks, cycles;
    int parallel_init, blocking, registration, misalign, per_iteration, cpu_time;
    uint64_t timeout_ms;
    const char *json;

    int nprocesses; /* 0: not given */
    int nhosts, netns, inline_streams, help;
    uint64_t link_rate; /* with netns: bits per second; 0: no limit */
    const char *topo, *machine, *nccl;
    int release; /* that is followed: release.h */

    ncclDataType_t types[ncclNumTypes];
    ncclRedOp_t ops[ncclNumOps];
    int ntypes, nops;
    int root; /* -1: each rank in turn */
    enum kl_perf_average average;

    const char *type_text, *op_text, *root_text, *average_text; /* as given */
};

/** Read the words behind "perf". -1: wrong usage, the reason in `why`. With --help only `help` counts. */
int kl_perf_configure(int argc, char **argv, struct kl_perf_config *config, char *why, size_t why_size);

/** What can be checked only when the number of ranks is known. -1 as above. */
int kl_perf_check_ranks(const struct kl_perf_config *config, int nranks, char *why, size_t why_size);

/** The size after `bytes`; 0 behind the last one. */
uint64_t kl_perf_next_size(const struct kl_perf_config *config, uint64_t bytes);

void kl_perf_print_help(FILE *to);

#endif
