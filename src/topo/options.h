/* SPDX-License-Identifier: Apache-2.0 */
/**
 * options.h - the settings that paths and selections depend on, as plain numbers.
 *
 * topo/ never reads the environment: the caller fills this. KL_TOPO_OPTIONS holds the documented defaults.
 * Source: the topology specification, 20.
 */
#ifndef KL_TOPO_OPTIONS_H
#define KL_TOPO_OPTIONS_H

#include "topo/release.h"
#include "topo/types.h"

#include <stdbool.h>

enum { KL_NET_MERGE_TEXT = 1024 };

/** Over how many of its nearest NICs the channels of a GPU spread. */
enum kl_netdevs {
    KL_NETDEVS_AUTO = 0, /* its share among the GPUs there */
    KL_NETDEVS_ALL = -1
};

/** Which NICs may be merged. */
enum kl_merge_policy {
    KL_MERGE_ALL,
    KL_MERGE_RAIL /* NICs of one rail */
};

struct kl_topo_options {
    int nccl;                 /* the release that is followed (release.h): KOLO_NCCL_VERSION */
    int p2p_level;            /* enum kl_path_type that P2P may use, -1: by rule */
    int gdr_level;            /* the same for GPUDirect RDMA; -1: PXB */
    int gdr_read;             /* NCCL_NET_GDR_READ: -2 by rule, 0, 1 */
    int gdr_c2c;              /* NCCL_NET_GDR_C2C: -1 as the release has it, 0, 1 */
    int pxn_c2c;              /* NCCL_PXN_C2C: the same */
    int netdevs;              /* NCCL_NETDEVS_POLICY: enum kl_netdevs, or how many NICs a GPU uses at most */
    int cross_nic;            /* NCCL_CROSS_NIC: 0, 1, 2 */
    int p2p_pxn_level;        /* NCCL_P2P_PXN_LEVEL: 0, 1, 2 */
    int ignore_disabled_p2p;  /* NCCL_IGNORE_DISABLED_P2P: 0, 1, 2 */
    int merge_level;          /* NCCL_NET_MERGE_LEVEL as enum kl_path_type: PORT, LOC for none */
    int merge_policy;         /* NCCL_NET_MERGE_POLICY: enum kl_merge_policy */
    bool split_mlopart;       /* NCCL_TOPO_SPLIT_MLOPART */
    bool gdr_mlopart;         /* NCCL_NET_GDR_MLOPART */
    bool nvb_disable;         /* NCCL_NVB_DISABLE */
    bool pxn_disable;         /* NCCL_PXN_DISABLE */
    bool p2p_disable;         /* NCCL_P2P_DISABLE: as if the level were LOC */
    bool shm_disable;         /* NCCL_SHM_DISABLE */
    bool net_disable_intra;   /* NCCL_NET_DISABLE_INTRA */
    bool scatter_nets;        /* NCCL_MNNVL_SCATTER_NETS_ENABLE */
    bool rail_per_host;       /* NCCL_MNNVL_RAIL_PER_HOST */
    bool net_force_flush;     /* NCCL_NET_FORCE_FLUSH */
    bool p2p_cuda_memcpy;     /* NCCL_P2P_USE_CUDA_MEMCPY */
    bool ignore_cpu_affinity; /* NCCL_IGNORE_CPU_AFFINITY */
    bool mnnvl;               /* hosts of one document share an NVLink domain */
    bool communicator;        /* apply the transports' own rules (the usual case); false: the bare graph */
    const char *force_merge;  /* NCCL_NET_FORCE_MERGE, NULL for none; must outlive the call it is given to */

    /** Does the driver's library (NVML) report P2P between two GPUs, by rank, as working? NULL: yes. */
    bool (*p2p_works)(void *ctx, int rank_a, int rank_b);

    /** Can the device of rank a map memory of rank b's? NULL: yes. */
    bool (*peer_access)(void *ctx, int rank_a, int rank_b);
    void *peer_ctx; /* for both; read-only, as topologies are asked from several threads */
};

#define KL_TOPO_OPTIONS                                                                                                \
    ((struct kl_topo_options){.nccl = KL_NCCL_DEFAULT,                                                                 \
                              .gdr_c2c = -1,                                                                           \
                              .pxn_c2c = -1,                                                                           \
                              .split_mlopart = true,                                                                   \
                              .scatter_nets = true,                                                                    \
                              .p2p_level = -1,                                                                         \
                              .gdr_level = -1,                                                                         \
                              .gdr_read = -2,                                                                          \
                              .cross_nic = 2,                                                                          \
                              .p2p_pxn_level = 2,                                                                      \
                              .merge_level = KL_PATH_PORT,                                                             \
                              .communicator = true})

#endif
