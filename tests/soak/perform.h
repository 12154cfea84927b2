/* SPDX-License-Identifier: Apache-2.0 */
/** perform.h - one rank of a job runs a program, and compares all results with the model. */
#ifndef KOLO_SOAK_PERFORM_H
#define KOLO_SOAK_PERFORM_H

#include "tests/soak/program.h"

enum soak_outcome {
    SOAK_RUNNING,
    SOAK_RIGHT,  /* every result, and every failure that was asked for has a name */
    SOAK_FAILED, /* a call failed, with a reason */
    SOAK_WRONG,  /* wrong data, writes outside of the buffers, or a failure without a name */
    SOAK_GONE    /* its process was killed, or stopped for ever */
};

/** A rank's report to the watcher; shared by processes. */
struct soak_note {
    _Atomic uint32_t step;    /* its current step; nsteps: the end */
    _Atomic uint32_t settled; /* all steps before this one are done */
    _Atomic uint32_t outcome; /* written last */
    char text[480];           /* unless it is right: the step and the error */
};

/** Joins as rank `rank`, and leaves. When it returns the rank holds nothing any more, whatever the outcome. `notes` has
 * one entry per rank. */
void soak_perform(const struct soak_program *p, int rank, ncclUniqueId id, struct soak_note *notes);

#endif
