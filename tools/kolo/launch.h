/* SPDX-License-Identifier: Apache-2.0 */
/**
 * launch.h - run a program as the ranks of a job on this machine, and wait for all of them to end.
 *
 * Output:   lines of the ranks' stdout and stderr go to the launcher's own, tagged on request.
 * Input:    rank 0 reads the launcher's stdin unless that is a terminal; the others read nothing.
 * Signals:  INT, TERM, HUP, QUIT, USR1, USR2, TSTP and CONT are passed on to every rank's process group.
 * Endings:  endings.h has the rules; a report lists how each rank ended if one died.
 * Leftover: nothing. Ranks end with the launcher, and so do processes that they left in their process group.
 * Threads:  call from the main thread of a process that has no other threads yet; it blocks signals.
 */
#ifndef KOLO_TOOL_LAUNCH_H
#define KOLO_TOOL_LAUNCH_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kl_launch {
    const char *who;       /* "kolo run": begins the launcher's own lines */
    const char *path;      /* the program */
    char *const *argv;     /* with its own argv[0] */
    int nranks, nhosts;    /* nranks is a multiple of nhosts */
    bool netns;            /* each host in a network namespace of its own */
    uint64_t link_rate;    /* with netns: of its link, bits per second in each direction; 0: no limit */
    bool tag;              /* begin each line with "[rank] " */
    bool bound;            /* give each rank a CPU also where there are more ranks than CPUs, in turn */
    bool unbound;          /* do not give each rank its share of the CPUs, where there are enough */
    const char *topo_file; /* NULL: as inherited */
    int host_devices;      /* KOLO_HOST_DEVICES; 0: as inherited */
    uint64_t timeout_ms;   /* for all of it; 0: none */
    uint64_t grace_ms;     /* for the others, after a rank died */
    int kept_fd;           /* a descriptor that ranks inherit under its number; 0: none */
    int verdict;           /* an exit code of ranks that is no death, see endings.h; 0: none */
    FILE *out, *err;

    /* Makes the job's id in this process, once the network is in place; NULL: ranks get no KOLO_COMM_ID. */
    ncclResult_t (*make_id)(ncclUniqueId *id);

    /* Called every 100 ms while ranks run; true: ranks are stuck, and a message was printed. May be NULL. */
    bool (*is_stuck)(void *context);
    void *context;
};

/** Returns the job's exit code (endings.h), or EXIT_PROBLEM after an error message if it could not be started. */
int kl_launch(const struct kl_launch *job);

#endif
