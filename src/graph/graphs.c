/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graphs.h"

#include "base/error.h"

#include <string.h>
#include <time.h>

bool kl_graphs_can_collnet(const struct kl_topo *t)
{
    for (int i = 0; i < t->count[KL_NODE_NET]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_NET, i)].net.coll) return true;
    return false;
}

bool kl_graphs_can_nvls(const struct kl_topo *t, int enable, bool multicast)
{
    return kl_graphs_nvls_refusal(t, enable, multicast) == KL_GRAPH_WANTED;
}

enum kl_graph_refusal kl_graphs_nvls_refusal(const struct kl_topo *t, int enable, bool multicast)
{
    if (!enable) return KL_NVLS_OFF;
    if (t->count[KL_NODE_GPU] <= 2) return KL_NVLS_FEW_GPUS;
    return enable == 1 || multicast ? KL_GRAPH_WANTED : KL_NVLS_NO_MULTICAST;
}

enum kl_graph_refusal kl_graphs_collnet_refusal(const struct kl_topo *t, bool asked)
{
    if (!asked) return KL_COLLNET_NOT_ASKED;
    if (!t->count[KL_NODE_NET]) return KL_COLLNET_NO_NET;
    return kl_graphs_can_collnet(t) ? KL_GRAPH_WANTED : KL_COLLNET_NO_REDUCING;
}

const char *kl_graph_refusal_text(enum kl_graph_refusal refusal)
{
    static const char *const texts[] = {
        [KL_GRAPH_WANTED] = "it was computed",
        [KL_NVLS_OFF] = "NCCL_NVLS_ENABLE is 0",
        [KL_NVLS_FEW_GPUS] = "it takes more than 2 GPUs that reach each other without the network",
        [KL_NVLS_NO_MULTICAST] = "it takes GPUs of sm 90 or later on an NVSwitch (NCCL_NVLS_ENABLE=1 takes that for "
                                 "granted)",
        [KL_COLLNET_NOT_ASKED] = "NCCL_COLLNET_ENABLE is not 1",
        [KL_COLLNET_NO_NET] = "no NIC is used: there is none, or only one node",
        [KL_COLLNET_NO_REDUCING] = "no NIC offers collectives (coll=\"1\")",
    };

    return texts[refusal];
}

bool kl_graphs_guess_multicast(const struct kl_topo *t)
{
    for (int i = 0; i < t->count[KL_NODE_GPU]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_GPU, i)].gpu.sm < 90) return false;
    return t->count[KL_NODE_NVS] > 0;
}

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
    static const enum kl_graph_id order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_COLLNET_CHAIN,
                                             KL_GRAPH_COLLNET_DIRECT, KL_GRAPH_NVLS};
    struct kl_graphs g = {.has_nets = topo->count[KL_NODE_NET] > 0};
    uint64_t start = thread_ns();
    struct kl_search *search;
    ncclResult_t rc;

    KL_TRY(kl_search_create(topo, &search));
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        bool collnet = order[i] == KL_GRAPH_COLLNET_CHAIN || order[i] == KL_GRAPH_COLLNET_DIRECT;

        if ((collnet && !request->collnet) || (order[i] == KL_GRAPH_NVLS && !request->nvls)) continue;
        KL_TRY_OR(rc, out, compute(search, request, order[i], &g));
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
