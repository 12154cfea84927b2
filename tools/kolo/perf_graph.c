/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_graph.h"

#include "base/error.h"

#include <stdlib.h>

/* `begun` counts the captures that have begun, also after an error. */
static ncclResult_t begin_all(const struct kl_perf_rank *ranks, int n, int *begun)
{
    for (*begun = 0; *begun < n; ++*begun)
        KL_TRY(koloStreamBeginCapture(ranks[*begun].stream, koloCaptureModeThreadLocal));
    return ncclSuccess;
}

static ncclResult_t end_one(koloStream_t stream, koloGraphExec_t *exec)
{
    koloGraph_t graph;

    KL_TRY(koloStreamEndCapture(stream, &graph));
    ncclResult_t rc = koloGraphInstantiate(exec, graph);
    koloGraphDestroy(graph);
    return rc;
}

/* All end, also behind the first error. */
static ncclResult_t end_all(struct kl_perf_graphs *g, const struct kl_perf_rank *ranks, int begun)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < begun; i++) {
        ncclResult_t one = end_one(ranks[i].stream, &g->exec[i]);
        if (!rc) rc = one;
    }
    return rc;
}

ncclResult_t kl_perf_graphs_capture(struct kl_perf_graphs *g, const struct kl_perf_rank *ranks, int n,
                                    ncclResult_t (*issue)(void *context, int count), void *context, int count)
{
    int begun;

    *g = (struct kl_perf_graphs){.n = n, .exec = calloc((size_t)n, sizeof(void *))};
    if (!g->exec) return KL_NOMEM("graphs");
    ncclResult_t rc = begin_all(ranks, n, &begun);
    if (!rc) rc = issue(context, count);
    ncclResult_t end = end_all(g, ranks, begun);
    if (rc || end) kl_perf_graphs_free(g);
    return rc ? rc : end;
}

ncclResult_t kl_perf_graphs_launch(const struct kl_perf_graphs *g, const struct kl_perf_rank *ranks)
{
    for (int i = 0; i < g->n; i++) KL_TRY(koloGraphLaunch(g->exec[i], ranks[i].stream));
    return ncclSuccess;
}

void kl_perf_graphs_free(struct kl_perf_graphs *g)
{
    for (int i = 0; i < g->n; i++) koloGraphExecDestroy(g->exec[i]);
    free(g->exec);
    *g = (struct kl_perf_graphs){0};
}
