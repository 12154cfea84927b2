/* SPDX-License-Identifier: Apache-2.0 */
/** perf_config.h - the command line of `kolo perf`. Options, defaults and meanings as in nccl-tests. */
#ifndef KOLO_TOOL_PERF_CONFIG_H
#define KOLO_TOOL_PERF_CONFIG_H

#include "include/nccl.h"
#include "plan/collective.h"
#include "tools/kolo/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Between operations. */
enum kl_perf_blocking { KL_BLOCKING_WAIT = 1, KL_BLOCKING_BARRIER = 2 };

enum kl_perf_average { KL_AVERAGE_RANK0, KL_AVERAGE_MEAN, KL_AVERAGE_MIN, KL_AVERAGE_MAX };

struct kl_perf_config {
    const struct kl_coll *coll;

    uint64_t min_bytes, max_bytes, step_bytes;
    int step_factor; /* > 1: sizes are multiplied by it instead */
    int nthreads, ndevices;
    int iterations, warmups, aggregated, checks, cycles;
    int blocking; /* flags of kl_perf_blocking */
    int parallel_init, registration, misalign, per_iteration, cpu_time;
    int graph_launches; /* 0: operations are issued one by one */
    int null_stream, timestamps;
    uint64_t timeout_ms;
    const char *json;

    int nprocesses; /* 0: not given */
    int nhosts, netns, inline_streams, help;
    uint64_t link_rate; /* with netns: bits per second; 0: no limit */
    const char *topo, *machine, *nccl;
    const char *net_plugin; /* a plugin to be measured by itself, without a collective; NULL: none */
    int release;            /* that is followed: release.h */

    ncclDataType_t types[ncclNumTypes];
    ncclRedOp_t ops[ncclNumOps];
    int ntypes, nops;
    int root; /* -1: each rank in turn */
    enum kl_perf_average average;

    const char *type_text, *op_text, *root_text, *average_text; /* as given */
};

/** Read the words behind "perf". -1: wrong usage, the reason in `why`. With --help only `help` counts. */
int kl_perf_configure(int argc, char **argv, struct kl_perf_config *config, char *why, size_t why_size);

/** The checks that need the number of ranks. -1 as above. */
int kl_perf_check_ranks(const struct kl_perf_config *config, int nranks, char *why, size_t why_size);

/** The size after `bytes`; 0 behind the last one. */
uint64_t kl_perf_next_size(const struct kl_perf_config *config, uint64_t bytes);

void kl_perf_print_help(FILE *to);

/** Its options. */
extern const struct kl_opt kl_perf_options[];

#endif
