/* SPDX-License-Identifier: Apache-2.0 */
/** perf_stats.h - how the times of single iterations spread. */
#ifndef KOLO_TOOL_PERF_STATS_H
#define KOLO_TOOL_PERF_STATS_H

#include <stddef.h>

struct kl_perf_spread {
    double min, max, mean, p50, p95, p99; /* in the unit of the times; percentiles are values that occurred */
    double stdev;                         /* of all the times, not of a sample of them */
    double cv_percent;                    /* stdev as a part of the mean */
};

/** Of n > 0 times, which get sorted. */
struct kl_perf_spread kl_perf_spread(double *times, size_t n);

#endif
