/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest of the times that at least `percent` of them do not exceed. */
static double percentile(const double *sorted, size_t n, double percent)
{
    size_t rank = (size_t)ceil(percent / 100 * (double)n);

    return sorted[rank ? rank - 1 : 0];
}

struct kl_perf_spread kl_perf_spread(double *times, size_t n)
{
    struct kl_perf_spread s = {0};
    double squares = 0;

    qsort(times, n, sizeof *times, ascending);
    for (size_t i = 0; i < n; i++) s.mean += times[i] / (double)n;
    for (size_t i = 0; i < n; i++) squares += (times[i] - s.mean) * (times[i] - s.mean);
    s.min = times[0];
    s.max = times[n - 1];
    s.p50 = percentile(times, n, 50);
    s.p95 = percentile(times, n, 95);
    s.p99 = percentile(times, n, 99);
    s.stdev = sqrt(squares / (double)n);
    s.cv_percent = s.mean > 0 ? 100 * s.stdev / s.mean : 0;
    return s;
}
