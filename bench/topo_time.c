/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_time FILE...: milliseconds of thread CPU time from a topology file to finished paths as rank 0 sees them (parsing,
 * fusing, graph, paths, trimming, paths again). Per file the median of 5; then the median and the largest over all files.
 */
#include "base/error.h"
#include "plan/cluster.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 5 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static ncclResult_t run_once(const char *path, double *ms)
{
    struct kl_cluster_request args = {.topo = path};
    struct kl_cluster cluster;
    struct kl_topo *topo = NULL;
    double start = cpu_ms();

    KL_TRY(kl_cluster_open(&args, &cluster));
    ncclResult_t rc = kl_cluster_topo(&cluster, 0, &topo);
    *ms = cpu_ms() - start;
    kl_topo_free(topo);
    kl_cluster_close(&cluster);
    return rc;
}

static bool measure(const char *path, double *median)
{
    double ms[RUNS];

    for (int i = 0; i < RUNS; i++)
        if (run_once(path, &ms[i])) return false;
    qsort(ms, RUNS, sizeof ms[0], compare);
    *median = ms[RUNS / 2];
    return true;
}

int main(int argc, char **argv)
{
    double *ms = calloc((size_t)argc, sizeof *ms);
    int n = 0;

    for (int i = 1; ms && i < argc; i++)
        if (measure(argv[i], &ms[n])) n++;
    if (n) {
        qsort(ms, (size_t)n, sizeof ms[0], compare);
        printf("%d files, %d refused: median %.3f ms, largest %.3f ms\n", n, argc - 1 - n, ms[n / 2], ms[n - 1]);
    }
    free(ms);
    return n ? EXIT_SUCCESS : EXIT_FAILURE;
}
