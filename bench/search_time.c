/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_time TOPOLOGY HOSTS [RUNS]: milliseconds of thread CPU time that the graph searches of one host take, the
 * median of RUNS (3) in one process. Settings come from the environment, as for `kolo graph`.
 */
#include "plan/planned.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RUNS = 101 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static ncclResult_t measure(const struct kl_planned *p, int runs, double *ms)
{
    const struct kl_plan_domain *d = &p->plan->domain[p->plan->domain_of[0]];
    const struct kl_graphs_request request = {
        .collnet = d->graphs.graph[KL_GRAPH_COLLNET_CHAIN] != NULL,
        .nvls = d->graphs.graph[KL_GRAPH_NVLS] != NULL,
        .file = p->graph_file,
    };

    for (int i = 0; i < runs; i++) {
        struct kl_graphs graphs;

        KL_TRY(kl_graphs_compute(d->topo, &request, &graphs));
        ms[i] = (double)graphs.cpu_ns / 1e6;
        kl_graphs_fini(&graphs);
    }
    return ncclSuccess;
}

int main(int argc, char **argv)
{
    struct kl_cluster_request args = {.topo = argc > 1 ? argv[1] : NULL,
                                      .hosts = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0};
    int runs = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 3, rc = 1;
    double ms[MAX_RUNS];
    struct kl_planned planned = {.plan = NULL};
    struct kl_cluster cluster;

    if (argc < 3 || args.hosts < 1 || runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: search_time TOPOLOGY HOSTS [RUNS]\n");
        return 2;
    }
    if (kl_cluster_open(&args, &cluster)) {
        fprintf(stderr, "%s\n", kl_error_text());
        return 1;
    }
    if (kl_planned_init(&cluster, &planned) || measure(&planned, runs, ms)) {
        fprintf(stderr, "%s\n", kl_error_text());
    } else {
        qsort(ms, (size_t)runs, sizeof ms[0], compare);
        printf("%.6f\n", ms[runs / 2]);
        rc = 0;
    }
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}
