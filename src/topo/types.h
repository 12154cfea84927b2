/* SPDX-License-Identifier: Apache-2.0 */
/**
 * types.h - the numbers of the topology: kinds of nodes, links and paths, processors, bandwidths.
 *
 * Orders and values are part of results: arrays are indexed by node type and printed in its order, path types are
 * compared as numbers (smaller is better), and every one of them appears in logs and files.
 * Source: the topology specification, 2.
 */
#ifndef KL_TOPO_TYPES_H
#define KL_TOPO_TYPES_H

#include "include/nccl.h"

#include <stdint.h>

enum kl_node_type {
    KL_NODE_GPU, /* of a rank of the communicator */
    KL_NODE_PCI, /* a switch */
    KL_NODE_NVS, /* NVSwitch: at most one */
    KL_NODE_CPU, /* a NUMA node */
    KL_NODE_NIC, /* a card */
    KL_NODE_NET, /* a port of a card, or a virtual device */
    KL_NODE_GIN, /* one that the GPU starts transfers on by itself; the search does not use it */
    KL_NODE_RMA, /* the same for one-sided operations */
    KL_NODE_DEV, /* a GPU of a rank in another domain, in releases that keep these; without paths */
    KL_NODE_CXB, /* the part of a GPU's link to the CPU that its partitions share */
    KL_NODE_TYPES
};

enum kl_path_type {
    KL_PATH_LOC,                /* the node itself */
    KL_PATH_NVL,                /* NVLink, direct or through NVSwitch */
    KL_PATH_PORT = KL_PATH_NVL, /* ports of one card: distances between NICs only */
    KL_PATH_NVB,                /* NVLink through one GPU in between */
    KL_PATH_C2C,                /* chip-to-chip link between GPU and CPU */
    KL_PATH_PIX,                /* at most one PCI switch; as a link: PCI */
    KL_PATH_PCI = KL_PATH_PIX,
    KL_PATH_PXB, /* several PCI switches, no host bridge */
    KL_PATH_P2C, /* GPU to NIC over C2C to the CPU, and PCIe; only where the release knows it */
    KL_PATH_PXN, /* GPU to NIC through another GPU */
    KL_PATH_PHB, /* through a PCI host bridge: a CPU */
    KL_PATH_SYS, /* through the link between sockets */
    KL_PATH_NET, /* through the network */
    KL_PATH_DIS, /* no path */
    KL_PATH_TYPES
};

/** The rule that gave a path its final form; for explanations. */
enum kl_path_rule {
    KL_RULE_SHORTEST,  /* fewest hops, and the widest of these */
    KL_RULE_P2P_OFF,   /* P2P is not allowed here: through the destination's CPU */
    KL_RULE_PXN,       /* through the NIC's GPU */
    KL_RULE_GDR_OFF,   /* the NIC may not access GPU memory: through the CPU */
    KL_RULE_NET_FASTER /* neither P2P nor shared memory: the network */
};

enum kl_cpu_arch { KL_ARCH_X86 = 1, KL_ARCH_POWER, KL_ARCH_ARM, KL_ARCH_MIXED };
enum kl_cpu_vendor { KL_VENDOR_INTEL = 1, KL_VENDOR_AMD, KL_VENDOR_ZHAOXIN, KL_VENDOR_MIXED };
/* Numbers begin anew with each vendor. */
enum kl_cpu_model {
    KL_MODEL_BDW = 1,
    KL_MODEL_SKL,
    KL_MODEL_SRP,
    KL_MODEL_ERP,
    KL_MODEL_YONGFENG = 1,
    KL_MODEL_ZEN_1_2 = 1,
    KL_MODEL_ZEN_3_4,
    KL_MODEL_ZEN_5
};

#define KL_BW_LOCAL    5000.0f /* a node to itself, and connections without a relevant limit */
#define KL_LATENCY_MAX 1e9f    /* microseconds: no network takes so long */

/** A network's latency in microseconds; a value that cannot be a time counts as absent. */
static inline float kl_latency(float us)
{
    return us > 0 && us < KL_LATENCY_MAX ? us : 0;
}

enum {
    KL_NODE_TEXT = 48, /* "GPU/0-17000" */
    KL_BUSID_TEXT = 24 /* "dddd:bb:dd.f" with a domain of up to 11 digits */
};

extern const char *const kl_node_type_name[KL_NODE_TYPES];
extern const char *const kl_path_type_name[KL_PATH_TYPES];
extern const char *const kl_link_type_name[KL_PATH_TYPES]; /* "" for types that no link has */

/**
 * The path type that a NCCL_P2P_LEVEL or NCCL_NET_GDR_LEVEL text means: a name in capitals, or the old numbers 0 (LOC),
 * 1 (PIX), 2 (PXB), 3 (PHB), 4 and above (SYS). -1 when it means nothing (NULL, empty or unknown).
 */
int kl_path_level(const char *text);

/** "0000:17:00.0" as 0x17000: hexadecimal digits up to the first other character than ':' and '.', at most 16. */
uint64_t kl_busid_parse(const char *text);

static inline int kl_busid_bus(uint64_t busid)
{
    return (int)(busid >> 12 & 0xff);
}

static inline int kl_busid_device(uint64_t busid)
{
    return (int)(busid >> 4 & 0xff);
}

/** The other way: dddd:bb:dd.f. */
char *kl_busid_text(uint64_t busid, char text[KL_BUSID_TEXT]);

#endif
