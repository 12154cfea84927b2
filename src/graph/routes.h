/* SPDX-License-Identifier: Apache-2.0 */
/**
 * routes.h - a topology as the search wants it: what a path takes from which link, in arrays that stay in cache.
 *
 * A route is a path with the facts that bookkeeping needs resolved per hop: whether it crosses PCI, and whether it also takes
 * something from the link in the opposite direction. GPUs and NETs are indices within their type.
 *
 * Threads: one; link_bw and net_bw are what a search consumes, everything else is const.
 * Source:  the graph specification, 3 and 5.1.
 */
#ifndef KL_GRAPH_ROUTES_H
#define KL_GRAPH_ROUTES_H

#include "topo/topo.h"

#include <stdbool.h>
#include <stdint.h>

/** What a hop takes from the link in the opposite direction, besides what it takes from its own. */
enum kl_back { KL_BACK_NONE, KL_BACK_EIGHTH, KL_BACK_FULL };

struct kl_hop {
    int32_t link;    /* of the topology */
    int32_t reverse; /* the link that `back` is taken from; -1 without */
    bool pci;
    uint8_t back; /* enum kl_back */
};

struct kl_route {
    uint32_t first; /* its hops are hop[first .. first + hops) */
    uint16_t hops;
    uint8_t type; /* enum kl_path_type */
    bool costly;  /* PCI through an Intel host bridge takes 6/5 of the bandwidth */
    float bw;
};

struct kl_routes {
    const struct kl_topo *topo;
    int ngpus, nnets;
    bool nvs; /* has an NVSwitch */
    int min_sm;
    bool amd; /* the first CPU is an x86 from AMD */

    float *link_bw; /* left, by link */
    float *net_bw;  /* left, by NET */

    struct kl_route *gpu_gpu, *gpu_net, *net_gpu; /* rows of the first */
    struct kl_route *gpu_nvs, *nvs_gpu;           /* of the first NVSwitch, by GPU; NULL without */
    struct kl_hop *hop;
    int32_t *pci_up, *pci_down; /* by GPU: its first PCI link and the reverse of it; -1 */

    /* Look-ups by rank, NET id or node id find the first match in list order: what stands in for what. */
    int32_t *same_rank; /* by GPU: the first GPU with its rank */
    int32_t *same_net;  /* by NET: the first NET with its id */
    int32_t *same_port; /* by NET: the first NET with its asic and port, which is what bandwidth is counted for */

    unsigned intra_types, inter_types; /* bit `type` of every path between GPUs and NVSwitch, and to and from NETs */
};

ncclResult_t kl_routes_create(const struct kl_topo *topo, struct kl_routes **routes);
void kl_routes_free(struct kl_routes *routes);

static inline const struct kl_route *kl_gpu_gpu(const struct kl_routes *m, int from, int to)
{
    return &m->gpu_gpu[(size_t)from * (size_t)m->ngpus + (size_t)to];
}

static inline const struct kl_route *kl_gpu_net(const struct kl_routes *m, int gpu, int net)
{
    return &m->gpu_net[(size_t)gpu * (size_t)m->nnets + (size_t)net];
}

static inline const struct kl_route *kl_net_gpu(const struct kl_routes *m, int net, int gpu)
{
    return &m->net_gpu[(size_t)net * (size_t)m->ngpus + (size_t)gpu];
}

static inline const struct kl_node *kl_routes_gpu(const struct kl_routes *m, int gpu)
{
    return &m->topo->node[kl_topo_at(m->topo, KL_NODE_GPU, gpu)];
}

static inline const struct kl_node *kl_routes_net(const struct kl_routes *m, int net)
{
    return &m->topo->node[kl_topo_at(m->topo, KL_NODE_NET, net)];
}

#endif
