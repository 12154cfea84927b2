/* SPDX-License-Identifier: Apache-2.0 */
/**
 * build_make.h - shared by the files that build a graph from a document.
 *
 *     build.c         its elements become nodes, linked along the PCI tree and between sockets
 *     build_links.c   the other links, which need all nodes: NVLink, XGMI, C2C, and between PCI switches
 */
#ifndef KL_TOPO_BUILD_MAKE_H
#define KL_TOPO_BUILD_MAKE_H

#include "base/error.h"
#include "topo/builder.h"
#include "topo/partition.h"

/** Position of a walk: the document, the topology that is built, and the current cpu. */
struct kl_place {
    const struct kl_xml *xml;
    struct kl_builder *b;
    int nccl;   /* the release that is followed */
    bool split; /* partitions of GPUs are devices of their own */
    int host;
    int cpu; /* node */
};

/** The kind of node (enum kl_node_type) that a PCI class stands for: `class` of a device, or `tclass` of a link's target. */
ncclResult_t kl_build_kind(const struct kl_xml *xml, int elem, const char *attr, int *kind);

/** Links of all the document's elements that name their other end. */
ncclResult_t kl_build_links(struct kl_place *p);

static inline uint64_t kl_build_id(int host, uint64_t local)
{
    return (uint64_t)host << 56 | kl_id_local(local);
}

/** The partition that a gpu element is, or -1 for all of the GPU. */
static inline int kl_build_partition(const struct kl_place *p, int gpu)
{
    return p->split ? kl_partition_of(p->xml, gpu) : -1;
}

static inline uint64_t kl_build_gpu_id(const struct kl_place *p, uint64_t busid, int partition)
{
    return kl_build_id(p->host, kl_partition_id(busid, partition));
}

/** Both ways. */
static inline ncclResult_t kl_build_link(struct kl_builder *b, int x, int y, enum kl_path_type type, float bw)
{
    KL_TRY(kl_builder_link(b, x, y, type, bw));
    return kl_builder_link(b, y, x, type, bw);
}

#endif
