/* SPDX-License-Identifier: Apache-2.0 */
/**
 * routes.h - a topology as the search wants it: what a path takes from which link, in arrays that stay in cache.
 *
 * A route is a path with the facts that bookkeeping needs resolved per hop: whether it crosses PCI, and whether it also takes
 * something from the link in the opposite direction. GPUs and NETs are indices within their type.
 *
 * Threads: one; level and net_bw are what a search consumes, everything else is const.
 * Source:  the graph specification, 3 and 5.1.
 */
#ifndef KL_GRAPH_ROUTES_H
#define KL_GRAPH_ROUTES_H

#include "graph/levels.h"
#include "topo/topo.h"

#include <stdbool.h>
#include <stdint.h>

/** How much of a channel's bandwidth a hop takes from a link. */
enum kl_share {
    KL_SHARE_ALL,
    KL_SHARE_COSTLY, /* 6/5: PCI through an Intel host bridge */
    KL_SHARE_EIGHTH, /* of what the opposite direction takes: acknowledgements */
    KL_SHARE_COSTLY_EIGHTH,
    KL_SHARES
};

struct kl_hop {
    int32_t link;    /* of the topology */
    int32_t reverse; /* the link in the opposite direction, if something is taken from it too; else -1 */
    uint8_t share, back_share;
};

struct kl_route {
    uint32_t first; /* its hops are hop[first .. first + hops) */
    uint16_t hops;
    uint8_t type; /* enum kl_path_type */
    uint8_t both; /* the worse of its type and of the type of the way back */
    float bw;
};

/** The columns for one bandwidth; NULL for shares that no hop of the machine has. */
struct kl_charge {
    struct kl_column *take[KL_SHARES], *give[KL_SHARES];
};

struct kl_routes {
    const struct kl_topo *topo;
    int ngpus, nnets;
    bool nvs; /* has an NVSwitch */
    int min_sm;
    bool amd; /* the first CPU is an x86 from AMD */

    struct kl_levels levels;
    int32_t *level;  /* left, by link: a level */
    float *net_bw;   /* left, by NET */
    unsigned shares; /* bit enum kl_share: met in a hop */

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

/** The columns for a bandwidth. */
ncclResult_t kl_routes_charge(struct kl_routes *routes, float bw, struct kl_charge *charge);

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
