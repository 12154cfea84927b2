/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graphs.h"

#include "base/error.h"

#include <string.h>
#include <time.h>

static uint64_t thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static ncclResult_t compute(struct kl_search *search, const struct kl_graphs_request *q, enum kl_graph_id id,
                            struct kl_graphs *graphs)
{
    struct kl_graph_request request = kl_graph_request_for(id);
    const struct kl_graph *ring = graphs->graph[KL_GRAPH_RING];
    uint64_t start = thread_ns();

    /* Trees and chains stand on the same channels as rings. */
    if (id == KL_GRAPH_TREE || id == KL_GRAPH_COLLNET_CHAIN)
        request.min_channels = request.max_channels = ring->nchannels;
    KL_TRY(kl_search_run(search, &request, q->file, &graphs->graph[id], &graphs->why[id]));
    graphs->why[id]->cpu_ns = thread_ns() - start;
    kl_graph_log(graphs->graph[id], graphs->has_nets);
    return ncclSuccess;
}

ncclResult_t kl_graphs_compute(const struct kl_topo *topo, const struct kl_graphs_request *request,
                               struct kl_graphs *graphs)
{
    struct kl_graphs g = {.has_nets = kl_topo_needs_net(topo)};
    uint64_t start = thread_ns();
    struct kl_search *search;
    ncclResult_t rc;

    KL_TRY(kl_search_create(topo, &search));
    for (int i = 0; i < KL_GRAPHS; i++) {
        bool collnet = kl_graph_order[i] == KL_GRAPH_COLLNET_CHAIN || kl_graph_order[i] == KL_GRAPH_COLLNET_DIRECT;

        if ((collnet && !request->collnet) || (kl_graph_order[i] == KL_GRAPH_NVLS && !request->nvls)) continue;
        KL_TRY_OR(rc, out, compute(search, request, kl_graph_order[i], &g));
    }
    g.cpu_ns = thread_ns() - start;
    *graphs = g;
    memset(&g, 0, sizeof g);
    rc = ncclSuccess;
out:
    kl_search_free(search);
    kl_graphs_fini(&g);
    return rc;
}

void kl_graphs_fini(struct kl_graphs *graphs)
{
    for (int i = 0; i < KL_GRAPHS; i++) {
        kl_graph_free(graphs->graph[i]);
        kl_graph_why_free(graphs->why[i]);
    }
    memset(graphs, 0, sizeof *graphs);
}
