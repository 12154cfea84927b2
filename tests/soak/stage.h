/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stage.h - a job for a program: its processes with their threads, on hosts that are emulated, watched until they end.
 *
 * The calling process has one thread and never uses the library: each process is a fork of it, with the program's settings in its environment.
 */
#ifndef KOLO_SOAK_STAGE_H
#define KOLO_SOAK_STAGE_H

#include "tests/soak/perform.h"

/** How it ended. */
struct soak_ending {
    bool late;   /* it did not end, and was killed */
    int crashed; /* processes that ended by a signal, or with an exit code */
    int killed;  /* processes that were killed or stopped, where the program is to be disturbed like that */
    int ranks[SOAK_GONE + 1]; /* by outcome; SOAK_RUNNING: never reported */
    char text[2000];          /* failures and errors, a line each */
};

/** Run it. `limit_s` counts only while this process runs. */
void soak_stage(const struct soak_program *p, int limit_s, struct soak_ending *ending);

#endif
