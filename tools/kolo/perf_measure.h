/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_measure.h - go through types, operations, roots and sizes; warm up, time and check each.
 *
 * All threads of all processes do the same in the same order; they agree on times and verdicts by small all-reduces of
 * the communicator that is measured, so that it works however the job was started.
 *
 * Timing: as nccl-tests: warm-ups, a barrier, then all iterations are issued and one synchronisation ends them; the time
 *         shown is that per operation. With -I each iteration is synchronised and timed by itself.
 */
#ifndef KOLO_TOOL_PERF_MEASURE_H
#define KOLO_TOOL_PERF_MEASURE_H

#include "tools/kolo/perf_config.h"
#include "tools/kolo/perf_rank.h"
#include "tools/kolo/perf_table.h"

/** One thread and its ranks. */
struct kl_perf_thread {
    const struct kl_perf_config *config;
    struct kl_perf_rank *rank;         /* config->ndevices of them */
    int nranks;                        /* of the whole job */
    int process, nprocesses, nthreads; /* own and all processes; threads of all processes */

    /* Called for each row as it becomes known, where rank 0 is: half -1 before the first; 0, 1; 2 behind the last. NULL
     * elsewhere. */
    void (*report)(void *context, const struct kl_perf_row *row, int half);
    void *context;

    struct kl_perf_summary summary; /* the same in all threads */
    int64_t own_wrong;              /* elements that this thread's ranks found wrong */

    uint64_t seed; /* of the test data; the same in all threads at the same time */
    const struct kl_data_table
        *reduced;     /* the expected result of the current reduction; NULL: nothing is reduced, or not checked */
    double *times_us; /* of the iterations; NULL without -I */
    struct kl_perf_graphs *graphs; /* of the iterations; NULL without -G */
    int ncomplaints;
};

/** Measure everything the configuration asks for. */
ncclResult_t kl_perf_measure(struct kl_perf_thread *thread);

#endif
