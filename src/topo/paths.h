/* SPDX-License-Identifier: Apache-2.0 */
/**
 * paths.h - the path from every GPU, CPU and NET to every other, with bandwidth and type; and the choices that depend on it.
 *
 * Stored are the paths between all GPUs, NETs, CPUs and the NVSwitch. Each is found by a breadth-first search that
 * starts at its destination; then P2P, PXN and GPUDirect rules reroute some.
 *
 * A path from `a` to `b` is link indices in order; link k leaves the node that link k - 1 leads to. The path of a
 * node to itself has no hops and 5000 GB/s. No path: no hops, 0 GB/s, KL_PATH_DIS.
 *
 * Errors:  ncclInternalError when a link that a path needs has no reverse; the message names both ends.
 * Threads: as topo.h.
 * Source:  the topology specification, 10 to 15.
 */
#ifndef KL_TOPO_PATHS_H
#define KL_TOPO_PATHS_H

#include "topo/reasons.h"
#include "topo/topo.h"

/** Compute all paths, replacing earlier ones, and the bounds of the searches that follow from them. */
ncclResult_t kl_topo_paths(struct kl_topo *topo);

/* ---- reading ---- */

/** The path between two nodes given by type (not PCI, not NIC) and index. */
static inline const struct kl_path *kl_path_between(const struct kl_topo *t, enum kl_node_type from, int i,
                                                    enum kl_node_type to, int j)
{
    return &t->path[from][to][(size_t)i * (size_t)t->count[to] + (size_t)j];
}

/** The same for two node indices. */
static inline const struct kl_path *kl_path(const struct kl_topo *t, int a, int b)
{
    enum kl_node_type from = t->node[a].type, to = t->node[b].type;

    return kl_path_between(t, from, a - t->first[from], to, b - t->first[to]);
}

/**
 * The length of a path: its links; where ranks and devices are separate nodes, plus one for each end that is a GPU and for
 * a relay's GPU.
 */
static inline int kl_path_length(const struct kl_topo *t, const struct kl_path *p)
{
    if (!p->hops || !kl_nccl_has(t->options.nccl, KL_CHANGE_DEVICE_NODES)) return p->hops;
    const struct kl_link *first = &t->link[t->hop[p->first]], *last = &t->link[t->hop[p->first + p->hops - 1u]];

    return p->hops + (t->node[first->from].type == KL_NODE_GPU) + (t->node[last->to].type == KL_NODE_GPU) +
           (p->rule == KL_RULE_PXN ? 2 : 0);
}

/** The links of a path: `p->hops` indices into t->link. */
static inline const int32_t *kl_path_hops(const struct kl_topo *t, const struct kl_path *p)
{
    return t->hop + p->first;
}

/** Are there paths between `a` and nodes of type `to`? False: there is no such table. */
static inline bool kl_path_has_table(const struct kl_topo *t, int a, enum kl_node_type to)
{
    return t->touched && (t->touched[a] >> to & 1);
}

/** Smallest (from SYS down) and largest (from LOC up) type of the paths from all GPUs to all nodes of a type. */
int kl_path_min_type(const struct kl_topo *t, enum kl_node_type to);
int kl_path_max_type(const struct kl_topo *t, enum kl_node_type to);

/** The largest distance of a PXN relay from its NIC: PXB, or P2C. */
int kl_path_relay_limit(const struct kl_topo *t);

/** Nearest CPU of a GPU by hops, in newer releases of those by bandwidth, as an index among CPUs; ncclInternalError if it reaches none. */
ncclResult_t kl_path_cpu_of_gpu(const struct kl_topo *t, int gpu, int *cpu);

/* ---- queries; GPUs and NETs by index, or ranks as stated ---- */

/** May GPU `a` access GPU `b`'s memory, as far as the machine, the settings and the driver say? */
ncclResult_t kl_topo_p2p(const struct kl_topo *t, int rank_a, int rank_b, struct kl_p2p *answer);

/** Can the P2P transport join two ranks: P2P, not slower than the network, and mappable by the driver? */
ncclResult_t kl_topo_p2p_transport(const struct kl_topo *t, int rank_a, int rank_b, struct kl_p2p *answer);

/** Would the network be faster between two ranks than the machine's own paths? True in older releases if a rank is not in the machine. */
bool kl_topo_net_faster(const struct kl_topo *t, int rank_a, int rank_b);

/** Can the SHM transport join two ranks? */
enum kl_shm_why kl_topo_shm(const struct kl_topo *t, int rank_a, int rank_b);

/** How a NIC reaches a GPU's memory; `read`: the NIC reads (sends). `net` is an index among NETs. */
ncclResult_t kl_topo_gdr(const struct kl_topo *t, int rank, int net, bool read, struct kl_gdr *answer);

/** Must received data be flushed before the GPU may read it? KL_FLUSH_C2C if C2C is the reason, in releases that distinguish it. */
enum kl_flush { KL_FLUSH_NONE, KL_FLUSH_NEEDED, KL_FLUSH_C2C };
ncclResult_t kl_topo_need_flush(const struct kl_topo *t, int rank, int net, enum kl_flush *flush);

/** The rank with the GPU that talks to the NIC for `rank`: itself, or its PXN relay. */
ncclResult_t kl_topo_pxn_rank(const struct kl_topo *t, int rank, int net, int *relay);

/** The reason; KL_PXN_USED if it is another rank. Both by index. */
static inline struct kl_pxn kl_topo_pxn(const struct kl_topo *t, int gpu, int net)
{
    return t->pxn[(size_t)gpu * (size_t)t->count[KL_NODE_NET] + (size_t)net];
}

/** Nodes of type `to` that are nearest to a node: highest bandwidth, then lowest type. Returns how many; `out` holds count[to]. */
int kl_topo_nearest(const struct kl_topo *t, enum kl_node_type from, int i, enum kl_node_type to, int *out);

/** Index of the NET that a GPU uses for a channel. ncclInternalError when it reaches none. */
ncclResult_t kl_topo_local_net(const struct kl_topo *t, int gpu, int channel, int *net);

/** The same, with the candidates of the choice. */
ncclResult_t kl_topo_net_choice(const struct kl_topo *t, int gpu, int channel, struct kl_net_choice *choice);

/** Index of the GPU that uses a NET first; -1 if none ever does. */
int kl_topo_local_gpu(const struct kl_topo *t, int net);

/** NETs in the order a search tries them, for all GPUs (`gpu` -1) or one; `out` holds count[NET]. Returns how many. */
ncclResult_t kl_topo_net_list(const struct kl_topo *t, int max_type, int gpu, int *out, int *n);

/** The GPU that uses a NET when every GPU has chosen its own, or the reason why none does. */
ncclResult_t kl_topo_net_usage(const struct kl_topo *t, int net, struct kl_net_usage *usage);

/**
 * NET and proxy rank for messages of `rank` to a peer's GPU with device number `peer_dev`. A receiver asks with the
 * number of its own GPU, and its own proxy serves it.
 */
ncclResult_t kl_topo_p2p_net(const struct kl_topo *t, int rank, int peer_dev, int channel, struct kl_p2p_net *answer);

/**
 * The CPUs for the thread that drives a GPU: the allowed CPUs of the GPU's NUMA node, or all of the node's with
 * NCCL_IGNORE_CPU_AFFINITY. False if none is left: then leave the thread's affinity as it is.
 */
bool kl_topo_affinity(const struct kl_topo *t, int gpu, const struct kl_cpuset *allowed, struct kl_cpuset *cpus);

/** Are all pairs of GPUs joined by NVLink (or C2C)? Is NVLink split into exactly two islands? */
bool kl_topo_all_nvlink(const struct kl_topo *t);
bool kl_topo_split_nvlink(const struct kl_topo *t);

#endif
