/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tune_measure.h - measures the time of operations on this machine, with processes of its own.
 *
 * Errors:  ncclSystemError; ncclRemoteError when a process failed, which has printed the reason.
 * Threads: one at a time; the process has not used the library before, as its children use it anew.
 */
#ifndef KOLO_TOOL_TUNE_MEASURE_H
#define KOLO_TOOL_TUNE_MEASURE_H

#include "graph/tuning_measured.h"

/** How well times repeat. */
struct kl_tune_spread {
    int times, apart; /* measured; of these, the median of the blocks is more than KL_TUNE_APART times the least */
};
#define KL_TUNE_APART 1.5

/**
 * Fill in the measurements with kl_measured_ranks[at] ranks, until `deadline` (base/clock.h): lines that are not begun by then
 * are left out. A line that is there is complete. Adds to `spread`.
 */
ncclResult_t kl_tune_measure(int at, uint64_t deadline, struct kl_tuning_measured *measured,
                             struct kl_tune_spread *spread);

/** When the first of `left` that share the time until `end` has to be done. */
uint64_t kl_tune_share(uint64_t end, int left);

#endif
