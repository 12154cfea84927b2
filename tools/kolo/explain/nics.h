/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nics.h - which NIC serves which GPU, which serves none, and which NICs of different hosts talk to each other.
 *
 *     nics.c        the question; GPUs and their NICs
 *     nics_use.c    which channels of rings, trees and NVLS lead through which NIC, and from NIC to NIC
 *     nics_why.c    NICs that are not used, look like one, or are several in one
 *     nics_summary.c  in one sentence
 *     nics_text.c   all of it for people
 *     nics_json.c   and for programs
 *
 * Hosts are alike, so GPUs and NICs are those of host 0, and channels are those of all hosts together. What is found is
 * plain data: nothing points into the plan.
 */
#ifndef KOLO_TOOL_EXPLAIN_NICS_H
#define KOLO_TOOL_EXPLAIN_NICS_H

#include "base/text.h"
#include "plan/planned.h"
#include "tools/kolo/explain/explain.h"
#include "topo/paths.h"

#include <jansson.h>

enum { KL_NIC_LABEL = 64 };

/** Channels that lead through something: bit c stands for channel c. */
struct kl_nic_channels {
    uint64_t ring, tree, nvls;
};

struct kl_nic_reason {
    const char *code;
    char text[512];
};

/** A GPU and one of its own NICs. */
struct kl_nic_gpu {
    int rank, dev;
    int net; /* device number of the NIC; -1: the GPU reaches none */
    char label[KL_NIC_LABEL];
    int type; /* of the path */
    float bw;
    bool gdr_send, gdr_recv;
    struct kl_nic_reason gdr_send_why, gdr_recv_why;
    int proxy; /* rank that it sends through; its own: no PXN */
    struct kl_nic_reason pxn_why;
};

enum kl_nic_state {
    KL_NIC_USED,     /* by rings, trees or NVLS */
    KL_NIC_SENDRECV, /* by sends and receives only */
    KL_NIC_UNUSED
};

struct kl_nic {
    int net; /* index among NETs of the whole machine */
    int dev, port;
    char label[KL_NIC_LABEL];
    float bw;
    uint64_t asic;
    bool gdr;
    int owner;    /* rank of the GPU that uses it first; -1 */
    int owned_by; /* how many GPUs have it among their own */
    int same_as;  /* device number of the first NIC with its guid and port; its own if it is that */
    int nsame;    /* how many NICs have its guid and port */
    int members;  /* of "mlx5_0+mlx5_1": 2; else 1 */
    enum kl_nic_state state;
    struct kl_nic_channels channels;
    struct kl_nic_reason why; /* it is not used, or for sends and receives only */
};

enum kl_rail_use { KL_RAIL_RING, KL_RAIL_TREE };

/** From a NIC of one node to one of another, for these channels. */
struct kl_rail {
    enum kl_rail_use use;
    int from, to; /* device numbers */
    uint64_t channels;
};

/** NICs that stand apart but are near enough to be merged. */
struct kl_nic_near {
    int a, b; /* device numbers */
    int distance;
};

struct kl_nics {
    const char *topology;
    int hosts, nnodes;
    bool assumed;           /* the number of hosts was not given */
    bool offhost;           /* anything leaves the host */
    bool gpus;              /* the devices are GPUs; false: this machine's CPUs */
    int ngpus;              /* of a host */
    int nchannels;          /* of the plan */
    struct kl_nic_gpu *gpu; /* rows: a GPU has one for each of its own NICs */
    struct kl_nic *nic;
    struct kl_rail *rail;
    struct kl_nic_near *near;
    int nrows, nnics, nrails, nnear;
    int repeated;               /* entries of the file that repeat the number of a NIC before them, and do not count */
    bool cross_nic;             /* NCCL_CROSS_NIC allows channels to change rails */
    int ring_found, tree_found; /* channels, before all use the fewer of them */
    bool ring_fell_back, tree_fell_back; /* nothing was found: the order of the devices, at 0.1 GB/s */
    bool bad_guids;                      /* guids that are not written as 0x..., and so count as equal */
    int merge_level;
    struct kl_nic_reason merge_why; /* what becomes of `near` */
};

/** What the question needs. */
struct kl_nics_request {
    const struct kl_cluster *cluster;
    const struct kl_plan *plan;
    const struct kl_topo *whole;
    const struct kl_xml *document;
};

/** The NIC of a device number; NULL if there is none. */
struct kl_nic *kl_nics_at(const struct kl_nics *n, int dev);

/* ---- nics_use.c ---- */
ncclResult_t kl_nics_find_use(const struct kl_nics_request *q, struct kl_nics *nics);

/* ---- nics_why.c ---- */
ncclResult_t kl_nics_find_why(const struct kl_nics_request *q, struct kl_nics *nics);

/* ---- printing ---- */

/** How many NICs are used for collectives. */
int kl_nics_used(const struct kl_nics *n);

/** Rails that lead from one device number to another. */
int kl_nics_crossing(const struct kl_nics *n);

/** How many it is not; and how many of the used ones would be no GPU's choice. */
int kl_nics_left_out(const struct kl_nics *n);
int kl_nics_strangers(const struct kl_nics *n);

/** How many NICs the largest set that counts as one port has; 1 where all differ. */
int kl_nics_alike(const struct kl_nics *n);

/** The answer in one sentence. */
void kl_nics_summary(const struct kl_nics *n, struct kl_text *to);
void kl_nics_text(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to);
json_t *kl_nics_json(const struct kl_nics *n);

#endif
