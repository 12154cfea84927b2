/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - the connection of two ends of a cluster: the path between them, the transport, and through the network the
 * NICs.
 *
 *     pair_ends.c     the two ends, by name
 *     pair.c          each transport's answer, and its consequences
 *     pair_path.c     the path, link by link
 *     pair_nics.c     the NICs of a pair that the network joins, channel by channel
 *     pair_reason.c   reasons: a code for programs, a phrase for people
 *
 * Ends are GPUs by rank of the cluster, NETs, CPUs and the NVSwitch. The results are plain data: nothing points into
 * the plan. Ranks are numbers in the cluster.
 *
 * Units:   GB/s.
 * Errors:  ncclInvalidUsage for ends that do not exist.
 */
#ifndef KL_PLAN_PAIR_H
#define KL_PLAN_PAIR_H

#include "plan/cluster.h"
#include "plan/traffic.h"
#include "transport/pair.h"

enum { KL_PAIR_TRANSPORTS = 8, KL_PAIR_SEGMENTS = 2, KL_NET_LABEL = 64, KL_PAIR_TEXT = 512 };

struct kl_pair_end {
    enum kl_node_type type;
    char name[KL_NODE_TEXT];
    char label[KL_NET_LABEL]; /* of NETs: "mlx5_0", else "" */
    int rank;                 /* of GPUs; else -1 */
    int dev, host;            /* of GPUs */
    int local;                /* of GPUs: rank in the plan's topologies */
    int shift;                /* add this to ranks of these */
};

/* ---- the way ---- */

struct kl_pair_link {
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    int type; /* enum kl_path_type */
    float bw;
    bool bottleneck;
};

/** The path between two nodes of one host. */
struct kl_pair_segment {
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    int type, rule;  /* enum kl_path_type, kl_path_rule */
    float bw;        /* of the path, which NCCL computes from its links the other way */
    float narrowest; /* the narrowest of its links this way */
    int nlinks;
    struct kl_pair_link *link;
};

/* ---- transports ---- */

/** The answer of a transport; the first that does not refuse is chosen. */
struct kl_pair_transport {
    const struct kl_transport *transport; /* NULL: the network */
    enum kl_refusal refusal;
    bool no_nic; /* the network refuses: it needs a NIC */
    bool chosen;
};

/* ---- NICs ---- */

/** How a side came to its NIC. */
enum kl_pair_nic_from {
    KL_PAIR_NIC_NONE,     /* there is none: `error` */
    KL_PAIR_NIC_SEARCH,   /* the search gave it to these channels */
    KL_PAIR_NIC_SENDER,   /* the sender's rule: `rule` */
    KL_PAIR_NIC_RECEIVER, /* the receiver uses its own */
};

struct kl_pair_nic_why {
    enum kl_pair_nic_from from;
    enum kl_p2p_net_why rule;
    bool own; /* it is one of the GPU's own, chosen among `choice` */
    struct kl_net_choice choice;
    char error[KL_PAIR_TEXT];
};

/** One side of a connection through the network. */
struct kl_pair_side {
    int rank;
    int dev; /* of the NET; -1: there is none */
    char label[KL_NET_LABEL];
    int type; /* of the path between GPU and NET */
    float bw;
    int proxy; /* rank next to the NIC that passes the data on; `rank`: none */
    struct kl_gdr gdr;
    struct kl_pair_nic_why why;
};

/** Channels from the first end to the second that use the same NICs the same way. */
struct kl_pair_nics {
    enum kl_traffic traffic;
    uint64_t channels; /* bit c: channel c */
    struct kl_pair_side send, recv;
};

/* ---- all of it ---- */

enum kl_pair_answer {
    KL_PAIR_NOTHING,   /* joins them */
    KL_PAIR_TRANSPORT, /* a transport of one host does */
    KL_PAIR_NETWORK,   /* does */
    KL_PAIR_PATH,      /* between nodes that exchange no data */
    KL_PAIR_NIC        /* one end is the other's NIC, or could be */
};

struct kl_pair_route {
    struct kl_pair_end a, b;
    bool gpus; /* the devices are GPUs; false: CPUs */
    enum kl_pair_answer answer;
    float bw;
    struct kl_pair_segment segment[KL_PAIR_SEGMENTS];
    int nsegments;

    /* between GPUs */
    struct kl_pair_transport transport[KL_PAIR_TRANSPORTS];
    int ntransports;
    struct kl_pair_why why; /* the result of the topology's rules */
    int via;                /* rank of the GPU that P2P leads through; -1 */
    const struct kl_transport *processes,
        *threads; /* the choice of host devices in a live job, as processes and as threads of one;
                                                       NULL: nothing, or not in one host */
    struct kl_pair_nics *nics;
    int nnics;

    /* between a GPU and a NIC */
    bool own; /* it is one of the GPU's own */
    struct kl_gdr gdr_send, gdr_recv;
    struct kl_pxn pxn; /* `relay` holds the rank */
    int relay;         /* rank of the GPU that was considered for PXN; -1 */
    int instead;       /* device number of the NIC that the GPU uses instead; -1 */
    char instead_label[KL_NET_LABEL];
};

/**
 * Between the named ends: "3", "GPU/3", "NET/0", a NIC's own name, "CPU/0-0", "NVS". A plan is made where one is
 * needed. Free with kl_pair_route_fini, also after a failure.
 */
ncclResult_t kl_pair_route_find(struct kl_cluster *cluster, const char *a, const char *b, struct kl_pair_route *route);
void kl_pair_route_fini(struct kl_pair_route *route);

/* ---- lookups ---- */

/** The transport that was chosen; NULL if all refused. */
const struct kl_pair_transport *kl_pair_chosen(const struct kl_pair_route *route);

/** The end that is a GPU, where the other is a NIC. */
const struct kl_pair_end *kl_pair_gpu(const struct kl_pair_route *route);

/** Do two sides have the same reason for their NICs, or for using GPUDirect or not? */
bool kl_pair_same_nic_why(const struct kl_pair_nic_why *a, const struct kl_pair_nic_why *b);
bool kl_pair_same_gdr_why(const struct kl_gdr *a, const struct kl_gdr *b);

/* ---- reasons ---- */

/** "P2P". */
const char *kl_pair_transport_name(const struct kl_pair_transport *transport);

/** "too_far", and a phrase without a full stop. */
const char *kl_pair_transport_code(const struct kl_pair_route *route, const struct kl_pair_transport *transport);
const char *kl_pair_transport_text(const struct kl_pair_route *route, const struct kl_pair_transport *transport,
                                   char text[KL_PAIR_TEXT]);
const char *kl_pair_nic_code(const struct kl_pair_nic_why *why);
const char *kl_pair_nic_text(const struct kl_pair_nic_why *why, char text[KL_PAIR_TEXT]);

#endif
