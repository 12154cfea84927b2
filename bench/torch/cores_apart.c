/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores_apart.c - how long a cache line takes from one core to another, as bench/collectives/cores.h has it, for ranks that Python starts.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 12,
    TURNS = 40,
    MOST_NS = 1000,
    SPINS = 1 << 22
}; /* more than MOST_NS is no exchange of caches: a process slept */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Wait for the line to count `value`; 0 where the other process did not run. */
static int await(_Atomic unsigned *line, unsigned value)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load_explicit(line, memory_order_acquire) >= value) return 1;
    return 0;
}

static double pass(_Atomic unsigned *line, int rank)
{
    double least = MOST_NS;
    unsigned count = 0;

    for (int t = 0; t < TRIES; t++) {
        double begun = now_ns();
        for (int i = 0; i < TURNS; i++, count += 2) {
            if (!await(line, count + (rank ? 1 : 0))) return 0;
            atomic_store_explicit(line, count + (rank ? 2 : 1), memory_order_release);
        }
        double ns = (now_ns() - begun) / (2.0 * TURNS);
        if (ns < least) least = ns;
    }
    return least < MOST_NS ? least : 0;
}

/** Nanoseconds between CPUs 0 and 1, at ranks 0 and 1, which call it together with the same new file `path`; 0: not known. */
double cores_apart_ns(const char *path, int rank)
{
    cpu_set_t own, one;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    double ns;

    if (fd < 0 || ftruncate(fd, 4096) || sched_getaffinity(0, sizeof own, &own)) return 0;
    void *line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (line == MAP_FAILED) return 0;
    CPU_ZERO(&one);
    CPU_SET(rank, &one);
    sched_setaffinity(0, sizeof one, &one);
    ns = pass(line, rank);
    sched_setaffinity(0, sizeof own, &own);
    munmap(line, 4096);
    return ns;
}
