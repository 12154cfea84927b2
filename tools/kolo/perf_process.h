/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_process.h - one process of a measurement: join the job, start its threads, report if it has rank 0.
 *
 * Ranks:    rank = (process * threads + thread) * devices + device, as in nccl-tests.
 * Joining:  a launcher of Kolo sets the id of the whole job (KOLO_COMM_ID); every other job is joined as
 *           koloInitFromEnv does, and with several ranks per process that communicator only hands out the id of the one
 *           to measure.
 * Failures: an error of the library is printed with the rank and its operation, and ends the process at once with
 *           KL_PERF_FAILED; the library notifies the other ranks.
 */
#ifndef KOLO_TOOL_PERF_PROCESS_H
#define KOLO_TOOL_PERF_PROCESS_H

#include "tools/kolo/perf_config.h"
#include "tools/kolo/perf_watch.h"

enum { KL_PERF_FAILED = 3 }; /* exit code after the failure of a rank; EXIT_PROBLEM is a verdict */

/**
 * Measure. `slots`: of all ranks, watched by the launcher; NULL: this process watches its own. `argv`: for the JSON file.
 * Returns an exit code, the same in all processes as far as results are concerned.
 */
int kl_perf_process(const struct kl_perf_config *config, struct kl_watch_slot *slots, int argc, char **argv);

#endif
