/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_table.h - the output of `kolo perf`: lines, columns and footer of nccl-tests, so that its parsers read them.
 *
 * A row is printed while it is measured: its start, then each half when it is known, then its end.
 */
#ifndef KOLO_TOOL_PERF_TABLE_H
#define KOLO_TOOL_PERF_TABLE_H

#include "plan/collective.h"
#include "tools/kolo/perf_config.h"
#include "tools/kolo/perf_stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { KL_PERF_HOST = 64 };

/** Where a rank runs; gathered from all ranks as raw bytes. */
struct kl_perf_device {
    int32_t rank, pid, device;
    char host[KL_PERF_HOST];
};

enum { KL_PERF_UNCHECKED = -1 };

struct kl_perf_half { /* out-of-place, or in-place */
    double time_us;   /* per operation */
    struct kl_coll_bandwidth bandwidth;
    int64_t wrong;                /* elements on all ranks; KL_PERF_UNCHECKED: shown as N/A */
    struct kl_perf_spread spread; /* of the iterations, with -I; in us */
    double *times_us;             /* of the iterations in order, with -I; else NULL */
    double *process_max_us;       /* the longest iteration of each process, with -I; else NULL */
};

struct kl_perf_row {
    size_t bytes, count;
    const char *type, *op;
    int root; /* -1: none */
    struct kl_perf_half half[2];
};

struct kl_perf_summary {
    int64_t wrong;
    double bus_sum; /* over all halves */
    int nhalves;
    double min_bandwidth; /* NCCL_TESTS_MIN_BW; negative: not asked for */
};

/** The mean of the bus bandwidths of all halves. */
double kl_perf_mean_bandwidth(const struct kl_perf_summary *summary);

/** Below 90 % of the requested bandwidth? */
bool kl_perf_too_slow(const struct kl_perf_summary *summary);

void kl_perf_print_header(FILE *to, const struct kl_perf_config *config, const struct kl_perf_device *devices,
                          int nranks);
void kl_perf_print_row(FILE *to, const struct kl_perf_row *row);
void kl_perf_print_half(FILE *to, const struct kl_perf_config *config, const struct kl_perf_half *half);
/** The end of a row, `at` that time. */
void kl_perf_print_end(FILE *to, const struct kl_perf_config *config, time_t at);
void kl_perf_print_footer(FILE *to, const struct kl_perf_config *config, const struct kl_perf_summary *summary);

#endif
