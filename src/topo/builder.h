/* SPDX-License-Identifier: Apache-2.0 */
/**
 * builder.h - a topology while it grows: nodes that can be looked up by id, links that can be merged, moved and
 * deleted. kl_builder_finish lays the result out as struct kl_topo.
 *
 * Nodes are named by the order of creation; a deleted node keeps its number and is left out at the end.
 * Bounded: KL_TOPO_MAX_NODES nodes and KL_TOPO_MAX_LINKS links, beyond which adding is ncclInternalError.
 */
#ifndef KL_TOPO_BUILDER_H
#define KL_TOPO_BUILDER_H

#include "topo/topo.h"

enum { KL_TOPO_MAX_NODES = 1 << 15, KL_TOPO_MAX_LINKS = 1 << 20, KL_TOPO_MAX_HOSTS = 256 };

struct kl_builder_link {
    int to;
    uint8_t type;
    float bw;
};

struct kl_builder_node {
    struct kl_node node;
    struct kl_builder_link *link;
    int nlinks, max_links;
    int up; /* node above it in the PCI tree, -1 for none */
    bool deleted;
};

struct kl_builder {
    struct kl_builder_node *node;
    int nnodes, max_nodes, nlinks;
    int *slot; /* hash of (type, id) to node + 1, 0 free; a power of two of them */
    int nslots;
    struct kl_cpuset *cpuset;
    uint64_t *host_hash;
    int ncpusets, max_cpusets, nhosts, max_hosts;
};

void kl_builder_fini(struct kl_builder *b);

/** Add a node; its id need not be new, but only the first node with an id can be found. */
ncclResult_t kl_builder_add(struct kl_builder *b, enum kl_node_type type, uint64_t id, int *node);

/** First node of this type with this id, or -1. */
int kl_builder_find(const struct kl_builder *b, enum kl_node_type type, uint64_t id);

/**
 * Link `from` to `to`, one direction: a link of the same type between the two gets wider, otherwise a new one takes its
 * place among the links of `from`, which descend in bandwidth, equals in order of appearance.
 */
ncclResult_t kl_builder_link(struct kl_builder *b, int from, int to, enum kl_path_type type, float bw);

/** Append a link without looking at order or type. */
ncclResult_t kl_builder_append(struct kl_builder *b, int from, struct kl_builder_link link);

/** Remove link `i` of a node, keeping the others' order. */
void kl_builder_unlink(struct kl_builder *b, int node, int i);

/** Keep a set of CPUs; a CPU node's `cpus` refers to it by `index`. */
ncclResult_t kl_builder_cpus(struct kl_builder *b, const struct kl_cpuset *set, int *index);

/** Number of the host with this hash, new if it was not seen before. */
ncclResult_t kl_builder_host(struct kl_builder *b, uint64_t hash, int *host);

/** Lay out as a topology. The builder keeps its contents; end it with kl_builder_fini. */
ncclResult_t kl_builder_finish(struct kl_builder *b, struct kl_topo **topo);

/** Fill a builder with the nodes and links of a topology, its order kept: for changes afterwards. */
ncclResult_t kl_builder_reopen(struct kl_builder *b, const struct kl_topo *topo);

/** Make one switch of the two that stacked Broadcom switches in base mode show. Source: the specification, 9.10. */
ncclResult_t kl_builder_flatten_switches(struct kl_builder *b);

#endif
