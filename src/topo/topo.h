/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topo.h - a machine as a graph: GPUs, PCI switches, NVSwitch, CPUs, NICs and network ports, and the links between.
 *
 *     facts, file -> struct kl_xml -> struct kl_topo -> kl_topo_paths -> kl_topo_trim -> kl_topo_paths
 *                 -> the searches of graph/
 *
 * Layout: flat arrays and indices, no pointers between elements. Nodes are in one array, ordered by type (GPU, PCI,
 * NVS, CPU, NIC, NET) and within a type by creation; `first[type]` and `count[type]` bound each type, so a node is
 * named either by its index in `node` or by (type, index within the type). The links that leave a node are
 * contiguous in `link`, in the order that decides ties in every later choice. A path is a row of link indices.
 *
 *     node:  |GPU 0|GPU 1|PCI 0|NVS 0|CPU 0|NIC 0|NET 0|        first[CPU] = 4, count[CPU] = 1
 *     link:  |2|3|          links of GPU 0 = link[node[0].first_link .. + node[0].nlinks)
 *
 * A search reserves bandwidth from a copy of its own: the topology does not change under it.
 *
 * Units:   GB/s (1e9 bytes), as float: results depend on single precision.
 * Memory:  a machine of n GPUs and m NETs holds (n + m)^2 + O(n + m) paths of 12 bytes, plus 8 bytes for each
 *          GPU and NET and 4 bytes per hop: 576 GPUs and 576 NETs in one NVLink domain take about 28 MB.
 * Errors:  ncclInternalError for documents that lack a required part; the message has FILE:LINE.
 * Threads: const after the final kl_topo_paths; any number of readers.
 * Source:  the topology specification, 2, 3, 9 and 14.
 */
#ifndef KL_TOPO_TOPO_H
#define KL_TOPO_TOPO_H

#include "base/cpuset.h"
#include "topo/options.h"
#include "topo/reasons.h"
#include "topo/types.h"
#include "topo/xml.h"

#include <stddef.h>
#include <stdint.h>

struct kl_node {
    uint64_t id;  /* host << 56 | local id, unique per type */
    uint8_t type; /* enum kl_node_type */
    int32_t first_link, nlinks;
    union {
        struct {
            int rank, dev, sm, gdr;
            int partition; /* of a GPU that is split in two; -1: a whole one */
            int made;      /* ascending in the order of the document */
            uint64_t shm_id;
            uint64_t no_p2p;    /* bit i: the driver allows no peer access to device i of its host */
            int fabric, clique; /* enum kl_fabric_state; -1: in no clique */
        } gpu;
        struct {
            uint64_t device; /* vendor << 48 | device << 32 | subsystem vendor << 16 | subsystem device */
        } pci;
        struct {
            int arch, vendor, model; /* enum kl_cpu_*; -1 unset */
            int cpus;                /* its CPUs: index into `cpuset` */
        } cpu;
        struct {
            uint64_t asic;
            uint64_t pci; /* bus id of its card; the chip where it is below a cpu */
            float bw, latency;
            int dev, port, gdr, coll, max_channels;
            int rail, plane; /* -1: the network names none */
            bool tcp;        /* named like a network interface, so data go over TCP */
        } net;
    };
};

struct kl_link {
    int32_t from, to; /* nodes */
    int32_t reverse;  /* first link of `to` with the same type that leads to `from`; -1 if there is none */
    float bw;         /* GB/s */
    uint8_t type;     /* enum kl_path_type; only LOC, NVL, C2C, PIX (printed PCI), SYS and NET occur */
};

struct kl_path {
    uint32_t first; /* its links are hop[first .. first + hops) */
    uint16_t hops;
    uint8_t type;     /* enum kl_path_type, KL_PATH_DIS when there is none */
    uint8_t rule : 4; /* enum kl_path_rule: the rule that formed it */
    uint8_t was : 4;  /* its type before the rule sent it another way */
    float bw;
};

struct kl_topo {
    struct kl_node *node;
    struct kl_link *link;
    int nnodes, nlinks;
    int first[KL_NODE_TYPES], count[KL_NODE_TYPES];

    struct kl_cpuset *cpuset; /* one for each CPU that the document had */
    int ncpusets;

    int *by_rank; /* indices of the GPUs, in ascending rank order */

    uint64_t *host_hash; /* by host: the top byte of an id. Hosts are numbered as they appear in the document */
    int nhosts;
    int own_host; /* the first until kl_topo_trim */
    bool trimmed; /* by kl_topo_trim */
    bool inter;   /* not all ranks are here, so that the network is needed: decided by kl_topo_trim */

    struct kl_topo_options options; /* under which paths are computed and questions answered */

    /* Filled by kl_topo_paths: see paths.h. */
    struct kl_path *path[KL_NODE_TYPES][KL_NODE_TYPES];
    uint16_t *touched;  /* per node, bit `type`: a search from a node of this type came by */
    float *near_net;    /* per GPU: widest of its paths to NETs that are PXB or better */
    struct kl_pxn *pxn; /* per GPU and NET: the decision on PXN when the path was settled */
    int32_t *hop;
    uint32_t nhops, max_hops;

    float max_bw, total_bw; /* largest and total bandwidth of the machine: the bounds of the searches */
};

/* ---- building ---- */

/**
 * The graph of a document. GPUs without a rank and NETs without a device number are left out. The document is not
 * needed afterwards.
 */
ncclResult_t kl_topo_build(const struct kl_xml *xml, const struct kl_topo_options *options, struct kl_topo **topo);
void kl_topo_free(struct kl_topo *topo);

/** Free the paths of kl_topo_paths. Harmless if there are none. */
void kl_topo_free_paths(struct kl_topo *topo);

/**
 * Drop the GPUs that can be reached from `own_rank` only through the network, and, when the GPUs left are all
 * `nranks` ranks, in older releases all NETs; note whether ranks are elsewhere, and which host is the rank's own. Needs paths. Unless all is kept it leaves none: compute them
 * again.
 */
ncclResult_t kl_topo_trim(struct kl_topo **topo, int own_rank, int nranks);

/**
 * Which GPUs reach each other better than through the network, directly or through others: per GPU index, the lowest one of
 * its domain. `domain` holds count[GPU]. Each domain is a node of the cluster, which kl_topo_trim keeps.
 */
void kl_topo_domains(const struct kl_topo *topo, int *domain);

/* ---- finding ---- */

static inline uint64_t kl_id_local(uint64_t id)
{
    return id & (((uint64_t)1 << 56) - 1);
}

static inline int kl_id_host(uint64_t id)
{
    return (int)(id >> 56);
}

/** Are there paths? */
static inline bool kl_topo_has_paths(const struct kl_topo *t)
{
    return t->touched;
}

/** Node index of the i-th node of a type. */
static inline int kl_topo_at(const struct kl_topo *t, enum kl_node_type type, int i)
{
    return t->first[type] + i;
}

/** Index of a node within its type. */
static inline int kl_topo_index(const struct kl_topo *t, int node)
{
    return node - t->first[t->node[node].type];
}

/** Are there ranks elsewhere, and NETs to them? Before trimming this is unknown, and any NET counts. */
static inline bool kl_topo_needs_net(const struct kl_topo *t)
{
    return t->count[KL_NODE_NET] && (!t->trimmed || t->inter);
}

/** Index among the GPUs of a rank's GPU; -1 if it is not in this topology. */
int kl_topo_gpu_of_rank(const struct kl_topo *t, int rank);

/** Do two NETs count as one port of one card and share its bandwidth: the same guid ("asic") and port number? */
static inline bool kl_net_same_port(const struct kl_node *a, const struct kl_node *b)
{
    return a->net.asic == b->net.asic && a->net.port == b->net.port;
}

/** Does the guid of a net element count? For older releases only one written as 0x... does; others count as 0, and so as equal. */
bool kl_net_guid_counts(const char *guid, int nccl);

/** Node index of the first node of `type` with this id; -1 if none. */
int kl_topo_find(const struct kl_topo *t, enum kl_node_type type, uint64_t id);

/** The first CPU: its processor facts count for the whole machine. NULL without one. */
const struct kl_node *kl_topo_first_cpu(const struct kl_topo *t);

/** "GPU/0-17000" into `text`; returns it. */
char *kl_node_text(const struct kl_node *node, char text[KL_NODE_TEXT]);

/** The end of the NVLinks of an <nvlink> element: a GPU (its target), the GPU's own CPU, or the NVSwitch. */
ncclResult_t kl_nvlink_end(const struct kl_xml *xml, int elem, enum kl_node_type *end);

/** Rule of NVLink generations: GB/s of one link for a compute capability, in a release. */
float kl_nvlink_bw(int sm, int nccl);

/** Rule of a PCI element's own link: GB/s. ncclInternalError without width or speed. */
ncclResult_t kl_pci_bw(const struct kl_xml *xml, int elem, float *bw);

/**
 * The chip that a NET belongs to: its guid if that counts, else 0; without a guid its id `node`, or in older releases its
 * device number. NETs of equal chip and port share one port's bandwidth.
 */
uint64_t kl_net_asic(const struct kl_xml *xml, int elem, uint64_t node, int nccl);

#endif
