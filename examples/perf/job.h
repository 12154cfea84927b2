/* SPDX-License-Identifier: Apache-2.0 */
/** job.h - the processes of a run: by MPI, by the environment of a launcher, or this one alone. */
#ifndef EXAMPLES_PERF_JOB_H
#define EXAMPLES_PERF_JOB_H

#include "perf.h"

struct job {
    int process, processes; /* which one this is, of how many */
    int in_host;            /* which one of its host's */
    ncclUniqueId id;        /* the same in all */
};

job start_job(int *argc, char ***argv);
void end_job(void);

#endif
