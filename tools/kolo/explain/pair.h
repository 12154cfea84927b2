/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - how two ends of a cluster talk: the way between them, the transport, and through the network the NICs.
 *
 *     pair.c        the question: which ends are meant, and what is asked of the plan
 *     pair_find.c   the way, and what each transport answers
 *     pair_nics.c   the NICs of a pair that the network joins, channel by channel
 *     pair_text.c   all of it for people
 *     pair_json.c   and for programs
 *
 * Ends are GPUs by rank of the cluster, NETs, CPUs and the NVSwitch. What is found is plain data: nothing points into
 * the plan.
 */
#ifndef KOLO_TOOL_EXPLAIN_PAIR_H
#define KOLO_TOOL_EXPLAIN_PAIR_H

#include "base/text.h"
#include "plan/planned.h"
#include "tools/kolo/explain/explain.h"
#include "topo/paths.h"

#include <jansson.h>

enum { KL_TALK_TRANSPORTS = 4, KL_TALK_LEGS = 2, KL_REASON_TEXT = 512 };

struct kl_talk_end {
    enum kl_node_type type;
    char name[KL_NODE_TEXT];
    char label[64]; /* of NETs: "mlx5_0", else "" */
    int rank;       /* of GPUs, in the cluster; else -1 */
    int dev, host;  /* of GPUs */
    int local;      /* of GPUs: rank as the plan's topologies number them */
    int shift;      /* what is to be added to ranks of these */
};

struct kl_talk_link {
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    const char *type;
    float bw; /* GB/s */
    bool bottleneck;
};

/** The way between two nodes of one host. */
struct kl_talk_leg {
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    int type, rule;  /* enum kl_path_type, kl_path_rule */
    float bw;        /* of the path, which NCCL takes from its links the other way */
    float narrowest; /* of its links this way */
    int nlinks;
    struct kl_talk_link *link;
};

struct kl_reason {
    const char *code;
    char text[KL_REASON_TEXT];
};

/** What a transport answered; the first that does not refuse is taken. */
struct kl_talk_transport {
    const char *name;
    bool refuses, chosen;
    struct kl_reason why;
};

/** One side of a connection through the network. */
struct kl_talk_side {
    int rank;
    int dev; /* of the NET; -1: there is none, see `why` */
    char label[64];
    int type; /* of the path between GPU and NET */
    float bw;
    int proxy; /* rank next to the NIC that passes the data on; `rank`: none */
    bool gdr;
    struct kl_reason gdr_why, why; /* why: this NIC was chosen */
};

enum kl_talk_use { KL_TALK_SENDRECV, KL_TALK_RING, KL_TALK_TREE };

/** Channels from the first end to the second that use the same NICs the same way. */
struct kl_talk_route {
    enum kl_talk_use use;
    uint64_t channels; /* bit c: channel c */
    struct kl_talk_side send, recv;
};

enum kl_talk_answer { KL_TALK_TRANSPORT, KL_TALK_NETWORK, KL_TALK_NOTHING, KL_TALK_PATH, KL_TALK_NIC };

struct kl_talk {
    const char *topology;
    int hosts;
    bool gpus; /* the devices are GPUs; false: this machine's CPUs */
    struct kl_talk_end a, b;
    enum kl_talk_answer answer;
    struct kl_talk_transport transport[KL_TALK_TRANSPORTS];
    int ntransports;
    int via;               /* rank of the GPU that P2P leads through; -1 */
    bool read;             /* P2P prefers reading */
    const char *processes; /* by what Kolo's host devices are joined live, a process each; NULL: not within a host */
    const char *threads;   /* and as threads of one process */
    float bw;
    struct kl_talk_leg leg[KL_TALK_LEGS];
    int nlegs;
    struct kl_talk_route *route;
    int nroutes;

    /* between a GPU and a NIC */
    bool own; /* it is one of the GPU's own */
    struct kl_gdr gdr_send, gdr_recv;
    struct kl_reason gdr_send_why, gdr_recv_why, pxn_why;
    int relay;        /* rank that the GPU sends through; its own: no PXN */
    char instead[80]; /* the NIC that the GPU uses instead; "" */
};

/** What the question needs besides the plan. */
struct kl_talk_request {
    struct kl_cluster *cluster;
    const struct kl_plan *plan;
    const struct kl_topo *whole; /* host 0 untrimmed */
    const struct kl_xml *document;
};

/* ---- pair_find.c ---- */

/** The topology that a GPU's rank works with. */
const struct kl_topo *kl_talk_topo(const struct kl_plan *plan, const struct kl_talk_end *end);

/** Append the way between two nodes of a topology to `talk->leg`; ranks are increased by `shift`. */
ncclResult_t kl_talk_add_leg(struct kl_talk *talk, const struct kl_topo *t, int from, int to, int shift);

/** Between two GPUs: transports, and the way. */
ncclResult_t kl_talk_find(const struct kl_talk_request *q, struct kl_talk *talk);

/** Between a GPU and a NET of its host, as the GPU's rank sees them. */
ncclResult_t kl_talk_find_nic(const struct kl_talk_request *q, struct kl_talk *talk);

void kl_talk_free(struct kl_talk *talk);

/* ---- pair_nics.c ---- */

/** Fill the routes of a pair that the network joins. */
ncclResult_t kl_talk_find_routes(const struct kl_talk_request *q, struct kl_talk *talk);

/* ---- printing ---- */

const char *kl_talk_use_name(enum kl_talk_use use);

/** The answer in one sentence. */
void kl_talk_summary(const struct kl_talk *talk, struct kl_text *to);
void kl_talk_text(const struct kl_talk *talk, const struct kl_cluster *cluster, FILE *to);
json_t *kl_talk_json(const struct kl_talk *talk);

#endif
