/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rdma_ports.h - the InfiniBand and RoCE ports that sysfs shows, with the facts that matter to RDMA: GIDs and their types,
 * MTU, speed of the link and of its PCI slot, the limit of locked memory. Nothing is opened.
 *
 * Threads:  any.
 */
#ifndef KL_TOPO_RDMA_PORTS_H
#define KL_TOPO_RDMA_PORTS_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_RDMA_PORTS = 32, KL_RDMA_GIDS = 16, KL_RDMA_TEXT = 64 };

struct kl_rdma_gid {
    int index;
    char text[KL_RDMA_TEXT], type[KL_RDMA_TEXT]; /* "::ffff:10.0.0.1"; "RoCE v2", "" where it cannot be read */
};

struct kl_rdma_port {
    char name[KL_RDMA_TEXT];
    int port;
    bool active;
    char layer[KL_RDMA_TEXT], rate[KL_RDMA_TEXT]; /* "Ethernet", "100 Gb/sec (4X EDR)", as the kernel writes them */
    char netdev[KL_RDMA_TEXT];                    /* "": InfiniBand without IP */
    int netdev_mtu, mtu;                          /* bytes; 0: unknown. Of RoCE `mtu` follows from the other */
    double link_gbps, pci_gbps;                   /* 0: unknown */
    int ngids;
    struct kl_rdma_gid gid[KL_RDMA_GIDS]; /* those that are not zero */
};

/** Below `sysfs` (NULL: "/sys"), in the order of names. Returns how many; at most KL_RDMA_PORTS are written. */
int kl_rdma_ports_read(const char *sysfs, struct kl_rdma_port *ports);

/** The limit of locked memory of this process in KiB; UINT64_MAX: none. */
uint64_t kl_rdma_memlock_kib(void);

#endif
