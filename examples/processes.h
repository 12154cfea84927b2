/* SPDX-License-Identifier: Apache-2.0 */
/** processes.h - several processes of one program, without a launcher: for programs that are to be tried by themselves. C++. */
#ifndef EXAMPLES_PROCESSES_H
#define EXAMPLES_PROCESSES_H

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/** Become `count` processes, which know the same unique id; which of them this one is. To be called before anything of CUDA's. */
static inline int become_processes(int count, ncclUniqueId *id)
{
    int channel[2];

    if (pipe(channel)) exit(1);
    for (int p = 1; p < count; p++) {
        if (fork()) continue;
        if (read(channel[0], id, sizeof *id) != (ssize_t)sizeof *id) exit(1);
        return p;
    }
    NCCLCHECK(ncclGetUniqueId(id));
    for (int p = 1; p < count; p++)
        if (write(channel[1], id, sizeof *id) != (ssize_t)sizeof *id) exit(1);
    return 0;
}

/** The first process waits for the others: how many of them failed. */
static inline int failed_processes(void)
{
    int status, failed = 0;

    while (wait(&status) > 0) failed += !WIFEXITED(status) || WEXITSTATUS(status);
    return failed;
}

#endif
