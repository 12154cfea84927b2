/* SPDX-License-Identifier: Apache-2.0 */
/**
 * routes.h - a topology for the search: the demand of each path on each link, in arrays that stay in cache.
 *
 * A route is a path with two facts per hop: whether the hop crosses PCI, and whether it also takes bandwidth from the
 * opposite direction of its link. GPUs and NETs are indices within their type.
 *
 * Threads: one; a search changes level and net_bw, everything else is const.
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
    KL_SHARE_EIGHTH, /* acknowledgements, on the opposite direction */
    KL_SHARE_COSTLY_EIGHTH,
    KL_SHARES
};

/** The demand of a hop on the opposite direction of its link; link -1: none. */
struct kl_back {
    int32_t link;
    uint8_t share;
};

struct kl_route {
    uint32_t first; /* its hops are [first .. first + hops) in link, share and back */
    uint16_t hops;
    uint16_t length; /* as the search counts it: kl_path_length */
    uint8_t type;    /* enum kl_path_type */
    uint8_t both;    /* the worse of its type and of the type of the way back */
    float bw;
    bool plain; /* its links are all different, and nothing is taken from opposite directions */
};

/**
 * The bandwidths of a round. Each has KL_SHARES columns of levels for reservations, from column `charge` on, and as many for
 * releases, from column charge + KL_GIVE on.
 */
enum kl_charge {
    KL_CHARGE_INTRA = 0 * KL_SHARES,
    KL_CHARGE_INTER = 1 * KL_SHARES,
    KL_CHARGE_HALF = 2 * KL_SHARES,  /* of inter: each of the two ways back of a balanced tree */
    KL_CHARGE_HEADS = 2 * KL_SHARES, /* of a head's test; these patterns do not use KL_CHARGE_HALF */
    KL_GIVE = 3 * KL_SHARES
};

/** The GPUs that a NET reaches best: by bandwidth, then by hops, or in newer releases by type. */
struct kl_nearest {
    float bw;
    int type;         /* KL_PATH_DIS: none is reached */
    int32_t first, n; /* near_gpu[first .. first + n), ascending */
};

struct kl_routes {
    const struct kl_topo *topo;
    int nccl;         /* the release that is followed */
    int ngpus, nnets; /* nnets: 0 where no ranks are elsewhere */
    int all_nets;
    bool nvs; /* has an NVSwitch */
    int min_sm;
    bool amd; /* the first CPU is an x86 from AMD */

    struct kl_levels levels;
    int32_t *level; /* left, by link: a level */
    float *net_bw;  /* left, by NET */

    struct kl_route *gpu_gpu, *gpu_net, *net_gpu; /* rows of the first */
    struct kl_route *gpu_nvs, *nvs_gpu;           /* of the first NVSwitch, by GPU; NULL without */
    int32_t *link;                                /* by hop: of the topology */
    uint8_t *share;                               /* by hop: enum kl_share */
    struct kl_back *back;                         /* by hop */
    int32_t *pci_up, *pci_down;                   /* by GPU: its first PCI link and the reverse of it; -1 */
    int32_t *way_out, *way_in; /* by GPU: the link that all routes to, or from, other GPUs use; -1 if there is none */

    /* Look-ups by rank, NET id or node id find the first match in list order. */
    int32_t *same_rank; /* by GPU: the first GPU with its rank */
    int32_t *same_net;  /* by NET: the first NET with its id */
    int32_t *next_port; /* by NET: the next with the same asic and port; -1 */
    int32_t *same_port; /* by NET: the first NET with its asic and port; bandwidth is counted for this one */

    struct kl_nearest *nearest; /* by NET */
    int32_t *near_gpu;
    int32_t *local_gpu; /* by NET: the GPU that uses it first; -1 */

    unsigned shares;                   /* bit enum kl_share of every hop, in both directions */
    unsigned intra_types, inter_types; /* bit `type` of every path between GPUs and NVSwitch, and to and from NETs */
};

ncclResult_t kl_routes_create(const struct kl_topo *topo, struct kl_routes **routes);
void kl_routes_free(struct kl_routes *routes);

/** Set the columns of a charge. Between kl_levels_begin and the first look-up. */
void kl_routes_charge(struct kl_routes *routes, enum kl_charge charge, float bw);

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

/** May a channel that is entered through one NET be left through another, as far as planes say? */
bool kl_routes_same_plane(const struct kl_routes *routes, int entry, int exit);

/** Do two NETs count as one rail: by the same port, or by the network's own rails? */
bool kl_routes_same_rail(const struct kl_routes *routes, int entry, int exit);

static inline const struct kl_node *kl_routes_net(const struct kl_routes *m, int net)
{
    return &m->topo->node[kl_topo_at(m->topo, KL_NODE_NET, net)];
}

#endif
