/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nics.h - the NICs of each GPU, NICs without a GPU, and pairs of NICs of different hosts that exchange data.
 *
 *     nics.c          GPUs and their NICs
 *     nics_use.c      channels of rings, trees and NVLS by NIC, and from NIC to NIC
 *     nics_why.c      NICs that are not used, look like one, or are several in one
 *     nics_count.c    numbers of GPUs, NICs, channels
 *     nics_reason.c   why a NIC is not used: a code for programs, a phrase for people
 *
 * Hosts are alike, so GPUs and NICs are of host 0, and channels of all hosts together. The results are
 * plain data: nothing points into the plan.
 *
 * Units:   GB/s.
 */
#ifndef KL_PLAN_NICS_H
#define KL_PLAN_NICS_H

#include "plan/cluster.h"
#include "plan/traffic.h"
#include "topo/netmerge.h"
#include "topo/paths.h"

enum { KL_NIC_LABEL = 64, KL_NIC_TEXT = 512 };

/** A set of channels: bit c stands for channel c. */
struct kl_nic_channels {
    uint64_t ring, tree, nvls;
};

/** A GPU and one of its own NICs. */
struct kl_nic_gpu {
    int rank, dev;
    int net; /* device number of the NIC; -1: the GPU reaches none */
    char label[KL_NIC_LABEL];
    int type; /* of the path */
    float bw;
    struct kl_gdr gdr_send, gdr_recv;
    struct kl_pxn pxn;
    int relay; /* rank of the GPU that was considered for PXN; -1 */
    int proxy; /* rank that it sends through; its own: no PXN */
};

enum kl_nic_state {
    KL_NIC_USED,     /* by rings, trees or NVLS */
    KL_NIC_SENDRECV, /* by sends and receives only */
    KL_NIC_UNUSED
};

/** The reason why no channel of a collective uses a NIC. */
enum kl_nic_idle_why {
    KL_NIC_ONE_HOST,   /* no data leave the host */
    KL_NIC_UNREACHED,  /* no GPU reaches it */
    KL_NIC_SLOWER,     /* every GPU has NICs with a wider path */
    KL_NIC_FARTHER,    /* or nearer ones */
    KL_NIC_SPREAD,     /* GPUs near it use other NICs that are as near */
    KL_NIC_SAME_PORT,  /* it counts as one port with others, whose bandwidth is used up */
    KL_NIC_NO_CHANNEL, /* the searches did not need it */
    KL_NIC_IDLE_WHYS
};

struct kl_nic_idle {
    enum kl_nic_idle_why why;

    /* slower, farther: the GPU that reaches it best has another NIC */
    int rank, here_type, there, there_type; /* there: device number of the other NIC */
    float here_bw, there_bw;

    /* same port */
    int first; /* device number of the first NIC with its guid and port; -1: this is the first */
    int others;
};

struct kl_nic {
    int net; /* index among NETs of the whole machine */
    int dev, port;
    char label[KL_NIC_LABEL];
    float bw;
    uint64_t asic;
    bool gdr;
    int owner;    /* rank of the GPU that uses it first; -1 */
    int owned_by; /* number of GPUs that have it among their own */
    int same_as;  /* device number of the first NIC with its guid and port; its own if this is the first */
    int nsame;    /* number of NICs with its guid and port */
    int members;  /* of "mlx5_0+mlx5_1": 2; else 1 */
    enum kl_nic_state state;
    struct kl_nic_channels channels;
    struct kl_nic_idle idle; /* if it is not used, or for sends and receives only */
};

/** From a NIC of one node to one of another, for these channels of rings or trees. */
struct kl_rail {
    enum kl_traffic traffic;
    int from, to; /* device numbers */
    uint64_t channels;
};

/** NICs that are separate but near enough to be merged. */
struct kl_nic_near {
    int a, b; /* device numbers */
    int distance;
};

struct kl_nics {
    int hosts, nnodes;
    bool assumed;           /* the number of hosts was not given */
    bool offhost;           /* some data leave the host */
    int ngpus;              /* of a host */
    int nchannels;          /* of the plan */
    struct kl_nic_gpu *gpu; /* rows: a GPU has one for each of its own NICs */
    struct kl_nic *nic;
    struct kl_rail *rail;
    struct kl_nic_near *near;
    int nrows, nnics, nrails, nnear;
    int repeated;               /* entries of the file that repeat the number of an earlier NIC, and do not count */
    bool cross_nic;             /* NCCL_CROSS_NIC allows channels to change rails */
    int ring_found, tree_found; /* channels, before all are reduced to the smaller number */
    bool ring_fell_back, tree_fell_back; /* nothing was found: the order of the devices, at 0.1 GB/s */
    bool bad_guids;                      /* guids that are not written as 0x..., and so count as equal */
    int merge_level;
    enum kl_merge_why merge; /* the result of merging with `near` */
};

/**
 * Plan for the cluster and look at its NICs. They are for other hosts: unless the number of hosts was given, the plan is
 * for two of them. Free with kl_nics_fini, also after a failure.
 */
ncclResult_t kl_nics_find(const struct kl_cluster *cluster, bool hosts_given, struct kl_nics *nics);
void kl_nics_fini(struct kl_nics *nics);

/* ---- how many ---- */

/** The NIC of a device number; NULL if there is none. */
struct kl_nic *kl_nics_at(const struct kl_nics *n, int dev);

/** NICs that are used for collectives, and unused ones. */
int kl_nics_used(const struct kl_nics *n);
int kl_nics_left_out(const struct kl_nics *n);

/** Number of used ones that no GPU would choose. */
int kl_nics_strangers(const struct kl_nics *n);

/** Number of rails from one device number to another, and their channels. */
int kl_nics_crossing(const struct kl_nics *n);
uint64_t kl_nics_crossing_channels(const struct kl_nics *n);

/** Size of the largest set of NICs that counts as one port; 1 where all differ. */
int kl_nics_alike(const struct kl_nics *n);

/** Number of own NICs, equal for all GPUs, and number of GPUs, equal for all used NICs; 0 if they differ. */
int kl_nics_per_gpu(const struct kl_nics *n);
int kl_nics_gpus_each(const struct kl_nics *n);

/** The first that is not used for collectives; NULL if all are. */
const struct kl_nic *kl_nics_first_idle(const struct kl_nics *n);

/** Are two NICs unused for the same reason? */
bool kl_nic_same_idle(const struct kl_nic *a, const struct kl_nic *b);

/* ---- reasons ---- */

/** "same_port", and a phrase without a full stop. */
const char *kl_nic_idle_code(const struct kl_nic_idle *idle);
const char *kl_nic_idle_text(const struct kl_nics *n, const struct kl_nic_idle *idle, char text[KL_NIC_TEXT]);

#endif
