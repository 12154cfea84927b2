/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collectives/cores.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 12, TURNS = 40, MOST_NS = 1000 }; /* more than MOST_NS is no exchange of caches: a thread slept */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void cores_bind(int rank)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static double least_of_tries(struct area_end *end)
{
    double least = MOST_NS;

    for (int t = 0; t < TRIES; t++) {
        double begin = now_ns();
        area_pass(end, TURNS);
        double ns = (now_ns() - begin) / TURNS;
        if (ns < least) least = ns;
    }
    return least < MOST_NS ? least : 0;
}

double cores_apart_ns(struct area_end *end)
{
    cpu_set_t own;
    double ns = 0;

    if (end->nranks < 2) return 0;
    if (end->rank < 2 && !sched_getaffinity(0, sizeof own, &own)) {
        cores_bind(end->rank);
        ns = least_of_tries(end);
        sched_setaffinity(0, sizeof own, &own);
    }
    area_tell(end, &ns, sizeof ns);
    return ns;
}
