/* SPDX-License-Identifier: Apache-2.0 */
/**
 * known.h - common machines by name: their parts, and the source of each description.
 *
 *     known.c        the table, and finding a row by its name, or by the contents of a file
 *     known_make.c   a row as a document, as a dump of the machine would be
 *
 * A layout lists the devices of each NUMA node; nodes are separated by '|'. G is a GPU, N a NIC, parentheses are a PCI
 * switch; a number before any of them repeats it, and one with a colon in front of a node is its NUMA id:
 *
 *     "2(2GN)|2(2GN)"         two sockets with two switches each, on each of which are two GPUs and a NIC
 *     "3:(2G2N)|1:(2G2N)"     NUMA nodes 3 and 1
 *
 * Threads: const.
 * Source:  the machine specification, 4 and 5; each row names its own.
 */
#ifndef KL_TOPO_KNOWN_H
#define KL_TOPO_KNOWN_H

#include "topo/product.h"
#include "topo/xml.h"

enum kl_wiring {
    KL_WIRING_NONE,
    KL_WIRING_SWITCH,
    KL_WIRING_PAIRS,    /* bridges: GPUs 0 and 1, 2 and 3, ... */
    KL_WIRING_ALL,      /* each GPU to every other, links divided among them */
    KL_WIRING_CUBE,     /* hybrid cube mesh of 8 GPUs with 4 links: DGX-1 with P100 */
    KL_WIRING_CUBE_V100 /* with 6 links: DGX-1 with V100 */
};

/** The kind of a row's source. */
enum kl_certainty {
    KL_KNOWN_READ,      /* read in a dump or file of such a machine */
    KL_KNOWN_PUBLISHED, /* in pages and repositories of its maker */
    KL_KNOWN_RECALLED   /* data sheets as remembered: the weakest */
};

struct kl_known_cpu {
    const char *arch, *vendor; /* vendor NULL: ARM has none */
    int family, model;
};

struct kl_known {
    const char *name, *title;
    const char *hints; /* words of file names that mean this machine, separated by blanks; NULL */
    const char *gpu;   /* enum kl_gpu_product's name */
    enum kl_wiring wiring;
    const struct kl_known_cpu *cpu;
    const char *layout;
    enum kl_nic_kind nic;
    int gbps, ports;    /* of each port; ports of each card */
    int trays;          /* that can be one NVLink domain, each a host with this layout; 1: it stands alone */
    bool published;     /* its provider publishes files with places only, in the form of this layout */
    int gpu_at, nic_at; /* if such a file has no classes: the first GPU is 0000:00:gpu_at.0, others follow; 0 */
    enum kl_certainty certainty;
    const char *source;
};

/** The i-th machine; NULL when there are no more. */
const struct kl_known *kl_known_at(int i);

/** "dgx-h100"; `trays` receives the number in "gb200-nvl72:4", else all. NULL for an unknown name or too many trays. */
const struct kl_known *kl_known_named(const char *name, int *trays);

/** GPUs and NICs of one host, and switches, by its layout. */
struct kl_known_parts {
    int gpus, nics, switches, nodes;
};
struct kl_known_parts kl_known_count(const struct kl_known *machine);

const struct kl_gpu_product *kl_known_product(const struct kl_known *machine);

/** "read in a file of such a machine". */
const char *kl_known_certainty(const struct kl_known *machine);

/** A document of the machine: GPUs with their NVLinks, NICs with their nets, hosts told apart where it has several. */
ncclResult_t kl_known_document(const struct kl_known *machine, int trays, struct kl_xml **xml);

/**
 * Give n GPUs (`pci` lists their pci elements, each with a gpu element) the NVLinks of a product's wiring.
 * `wired` is false, and no link is added, if the wiring has no place for so many GPUs.
 */
ncclResult_t kl_known_wire(struct kl_xml *xml, const int *pci, int n, enum kl_wiring wiring, int links, bool *wired);

/** An nvlink element: `target` is a bus id, or NULL for the switch. */
ncclResult_t kl_known_link(struct kl_xml *xml, int gpu, const char *target, int count);

/** Add a card's nets, one for each port; `number` counts the nets of host `host`. */
ncclResult_t kl_known_nets(struct kl_xml *xml, int pci, enum kl_nic_kind kind, int gbps, int ports, int host,
                           int *number);

#endif
