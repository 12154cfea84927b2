/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning_ranges.h - the sizes at which the choice of an algorithm, a protocol, channels or threads changes, to the byte.
 *
 * Between two sizes at which corrections change, times are straight lines, so each choice is the best one of a range. Where two
 * lines cross at a narrow angle, single precision lets them change places more than once within some hundred bytes: one of
 * these is found.
 *
 * Threads: pure.
 */
#ifndef KL_GRAPH_TUNING_RANGES_H
#define KL_GRAPH_TUNING_RANGES_H

#include "graph/tuning.h"

struct kl_tuning_range {
    int64_t first, last;            /* bytes */
    struct kl_tuning_choice choice; /* its time is for size `first`; algo -1: nothing can do it */
    float last_time;
};

/** All ranges of [first, last], 1 <= first <= last. Free `range`. At the bytes of `op` the ranges are right also within such a crossing. */
ncclResult_t kl_tuning_ranges(const struct kl_tuning *t, const struct kl_tuning_op *op, int64_t first, int64_t last,
                              struct kl_tuning_range **range, int *nranges);

#endif
