/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connect.h - from the graphs of single machines to rings and trees over all ranks.
 *
 * Every rank sends one record to all others: the ends and neighbours of its channels. A *node* is a set of ranks that share
 * a machine (or an NVLink domain): their first rings start at the same rank. The rings of the nodes are joined end to end
 * in node order; the trees hang on two binary trees over the nodes, one per half of the channels:
 *
 *     node 0           node 1           node 2
 *     0 -> 1 -> 2      3 -> 4 -> 5      6 -> 7 -> 8        ring: 2 -> 3, 5 -> 6, 8 -> 0
 *
 * Neighbours are computed from the records on each query. Offline, the hosts of a cluster are alike: one record serves the
 * same rank of every host, shifted.
 *
 * Sizes:   a record is wire format, of one size on all ranks.
 * Errors:  ncclInternalError when records do not fit together; the message names rank and channel.
 * Threads: a struct kl_connect is const once made; the records must outlive it.
 * Source:  the graph specification, 8.
 */
#ifndef KL_GRAPH_CONNECT_H
#define KL_GRAPH_CONNECT_H

#include "graph/graph.h"
#include "graph/offload.h"
#include "graph/profile.h"

enum { KL_GRAPH_CHANNELS = KL_MAX_CHANNELS / 2 }; /* of one graph; the communicator uses each twice */

/** The numbers of a graph that ranks agree on. */
struct kl_graph_facts {
    int32_t pattern, nchannels, same_channels, cross_nic;
    int32_t type_intra, type_inter;
    float bw_intra, bw_inter, latency_inter;
};

/** A rank's record of a channel: ranks, -1 for none. */
struct kl_channel_record {
    int32_t ring_recv, ring_send;   /* the node's first and last */
    int32_t ring_prev, ring_next;   /* the rank's own neighbours within the node */
    int32_t to_parent, to_child[2]; /* the node's ranks that talk to the parent and the children of the node */
    int32_t tree_prev, tree_next;   /* the rank's own neighbours in the node's chain */
    int32_t chain_head;             /* CollNet: the first rank of the node's chain */
    int32_t chain_prev, chain_next; /* CollNet: the rank's neighbours in the node's chain */
};

enum { KL_COLLNET_ARITY = 7, KL_COLLNET_HEADS = KL_COLLNET_ARITY + 1 };

/** The record that a rank sends to all others once it has its graphs. Wire format. */
struct kl_rank_record {
    struct kl_graph_facts graph[KL_GRAPHS];
    int32_t cpu_arch, cpu_vendor; /* enum kl_cpu_arch, kl_cpu_vendor */
    int32_t sm;                   /* of the rank's own GPU; 0 if unused */
    int32_t nheads;               /* NVLS: different first ranks of its channels */
    int32_t head[KL_GRAPH_CHANNELS];
    int32_t ndirect;                  /* CollNetDirect: number of different first ranks of its channels */
    int32_t direct[KL_COLLNET_HEADS]; /* CollNetDirect: these ranks, which are its heads */
    int32_t direct_down
        [KL_COLLNET_ARITY]; /* CollNetDirect: the other ranks of the own channel, if the rank is a head; -1 for none */
    int32_t nccl;           /* the release that the rank follows; 0 if unknown */
    int32_t p2p_wanted;     /* channels that it wants for a peer at least; 0 if unused */
    int32_t p2p_far;        /* the rank that wants these; -1: one of another node */
    int32_t all_nvlink;     /* are all GPUs of its machine joined by NVLink? */
    float net_bw;           /* GB/s to the slowest of its own NETs; 0 without */
    uint32_t measured;      /* mark of the times that its process knows; 0 without */
    uint32_t net;           /* mark of the network that it uses; 0 without */
    struct kl_profile profile; /* of its machine, by a host's leader; else zeros */
    uint32_t no_direct;        /* it does not let others map its buffers */
    uint32_t kernel_copies;    /* enum kl_kernel_copies */
    struct kl_channel_record channel[KL_GRAPH_CHANNELS];
};
_Static_assert(sizeof(struct kl_channel_record) == 48, "wire format");
_Static_assert(sizeof(struct kl_rank_record) == KL_GRAPHS * 36 + 164 + KL_GRAPH_CHANNELS * 52, "wire format");

/** The graphs of one rank; NULL where there is none. */
struct kl_graphs {
    struct kl_graph *graph[KL_GRAPHS];
    struct kl_graph_why *why[KL_GRAPHS];
    bool has_nets;   /* the machine they are for */
    uint64_t cpu_ns; /* of the calling thread, all searches with their preparation */
};

/** Records of all ranks: rank r says record[which[r]], every rank in it increased by shift[r]. */
struct kl_ranks {
    int nranks, nrecords;
    const struct kl_rank_record *record;
    const int32_t *which, *shift; /* NULL: record[r], not shifted */
};

/** Which ranks share a node. Nodes are numbered as they appear by ascending rank. */
struct kl_nodes {
    int nnodes, max_local;
    int32_t *of_rank;    /* by rank */
    int32_t *local_rank; /* by rank: its number within its node, ascending */
    int32_t *head;       /* by node: the first rank of its first ring, which is often not the lowest */
    int32_t *first;      /* by node, one more at the end: where its ranks begin in `rank` */
    int32_t *rank;       /* all ranks, by node and ascending */
};

/** The user's settings for channel counts; -2 is "not set". */
struct kl_channel_params {
    int64_t min_channels, max_channels;     /* NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS */
    int64_t min_rings, max_rings;           /* NCCL_MIN_NRINGS, NCCL_MAX_NRINGS: their old names */
    int64_t min_ctas, max_ctas;             /* NCCL_MIN_CTAS, NCCL_MAX_CTAS; over the configuration's */
    int64_t nvls_channels;                  /* NCCL_NVLS_NCHANNELS */
    int64_t collnet_node_threshold;         /* NCCL_COLLNET_NODE_THRESHOLD */
    int64_t unpack_double;                  /* NCCL_UNPACK_DOUBLE_NCHANNELS */
    int64_t min_p2p, max_p2p, per_net_peer; /* NCCL_MIN_P2P_NCHANNELS, NCCL_MAX_..., NCCL_NCHANNELS_PER_NET_PEER */
    int64_t per_channel_net_bw;             /* NCCL_P2P_PER_CHANNEL_NET_BW: GB/s */
    int64_t max_p2p_peers;                  /* NCCL_P2P_MAX_PEERS; -2: all ranks */
    int64_t p2p_group;                      /* NCCL_P2P_SCHEDULE_GROUP_SIZE */
    int64_t work_args_bytes;                /* NCCL_WORK_ARGS_BYTES; INT64_MAX: no limit */
};

#define KL_CHANNEL_PARAMS                                                                                              \
    ((struct kl_channel_params){.min_channels = -2,                                                                    \
                                .max_channels = -2,                                                                    \
                                .min_rings = -2,                                                                       \
                                .max_rings = -2,                                                                       \
                                .min_ctas = -2,                                                                        \
                                .max_ctas = -2,                                                                        \
                                .nvls_channels = -2,                                                                   \
                                .collnet_node_threshold = 2,                                                           \
                                .unpack_double = 1,                                                                    \
                                .min_p2p = 1,                                                                          \
                                .max_p2p = 64,                                                                         \
                                .per_net_peer = -1,                                                                    \
                                .per_channel_net_bw = 14,                                                              \
                                .max_p2p_peers = -2,                                                                   \
                                .p2p_group = 8,                                                                        \
                                .work_args_bytes = INT64_MAX})

/** Further inputs of the channel counts. */
struct kl_connect_request {
    int rank;                            /* own */
    int min_sm;                          /* over all ranks */
    bool collnet, nvls;                  /* supported here */
    enum kl_offload no_collnet, no_nvls; /* why not; for explanations */
    int nvls_channels;                   /* wanted by the own device: kl_nvls_channels */
    bool unpack;                         /* the network device delivers packed data */
    int min_ctas, max_ctas;              /* of the communicator's configuration: 1 and 64 */
    int parent_channels;                 /* of the parent that shares its resources; 0: own resources */
    int parent_nvls_channels;            /* of such a parent with NVLS; 0: none */
    bool oversubscribed;                 /* ranks share CPUs; all ask alike */
    const int32_t
        *core; /* by rank: ranks that share CPUs have the same number, below nranks; NULL: none share, or unknown */
    struct kl_channel_params params;
};

/** Rules that decide how many channels there are, in the order in which they apply. */
enum kl_channel_reason {
    KL_CHANNELS_RING,  /* the own ring graph */
    KL_CHANNELS_TREE,  /* the own tree graph */
    KL_CHANNELS_RANKS, /* of all ranks the fewest */
    KL_CHANNELS_TWICE,
    KL_CHANNELS_COLLNET,
    KL_CHANNELS_FAST_RING,
    KL_CHANNELS_UNPACK,
    KL_CHANNELS_UPPER,
    KL_CHANNELS_MAX_CTAS,
    KL_CHANNELS_PARENT,
    KL_CHANNELS_LOWER,
    KL_CHANNELS_NVLS,
    KL_CHANNEL_REASONS
};

/** A rule that changed the number of channels. */
struct kl_channel_step {
    uint8_t reason; /* enum kl_channel_reason */
    int before, after;
};

struct kl_connect {
    struct kl_ranks ranks;
    struct kl_nodes nodes;
    struct kl_graph_facts graph[KL_GRAPHS]; /* as all ranks agreed */
    int rank;
    int cpu_arch, cpu_vendor; /* KL_ARCH_MIXED, KL_VENDOR_MIXED when ranks differ */
    int max_tree_pattern;
    int nccl;        /* the release that all ranks follow */
    float net_bw;    /* GB/s to the slowest NET of any rank; 0 without */
    bool all_nvlink; /* joins all GPUs of every machine */
    int p2p_group;   /* ranks of a group of the schedule of messages; 0: a node's */
    bool collnet, nvls;
    enum kl_offload no_collnet, no_nvls; /* why not */
    int base;          /* channels of the graphs: c and c + base have the same ring and complementary trees */
    int nchannels;     /* of the communicator */
    int coll_channels; /* without those only NVLS uses */
    int nvls_channels;
    int nheads;                      /* of NVLS */
    uint8_t source[KL_MAX_CHANNELS]; /* channel c is like channel source[c] < 2 * base */
    struct kl_channel_step
        step[KL_CHANNEL_REASONS + 1]; /* the rules that led to `nchannels`; the parent may limit it twice */
    int nsteps;
    bool oversubscribed; /* from the request */
    int32_t *core;       /* owned */
};

/** As many channels as an operation can have: NVLS may have more than rings and trees, in newer releases. */
static inline int kl_connect_most_channels(const struct kl_connect *c)
{
    return c->nvls_channels > c->nchannels ? c->nvls_channels : c->nchannels;
}

/* ---- a rank's own part ---- */

/** Fill a rank's record from its graphs, with the channels that both ring and tree have. */
void kl_connect_record(const struct kl_graphs *graphs, int rank, int cpu_arch, int cpu_vendor,
                       struct kl_rank_record *record);

/**
 * Channels for NVLS: 16, more from sm 100 on, or the user's setting, within the limits of the configuration. `several`: is
 * the communicator larger than the node? `nccl`: the release.
 */
int kl_nvls_channels(int sm, bool several, int nccl, const struct kl_connect_request *request);

/* ---- all ranks together ---- */

ncclResult_t kl_connect_create(const struct kl_ranks *ranks, const struct kl_connect_request *request,
                               struct kl_connect **connect);
void kl_connect_free(struct kl_connect *connect);

/** Neighbours in a ring. Any channel below nchannels, any rank. */
struct kl_ring_links {
    int prev, next;
};
struct kl_ring_links kl_connect_ring(const struct kl_connect *c, int channel, int rank);

/** Neighbours in a tree; -1 for none. down[]: the node's own chain first, then child 0 and 1 of the node, packed. */
struct kl_tree_neighbours {
    int up, down[3];
};
struct kl_tree_neighbours kl_connect_tree(const struct kl_connect *c, int channel, int rank);

/** Do all ranks have the same neighbours in two channels' rings, or trees? */
bool kl_connect_same_ring(const struct kl_connect *c, int a, int b);
bool kl_connect_same_tree(const struct kl_connect *c, int a, int b);

/** Longest way from a leaf to the root, in hops. */
int kl_connect_tree_depth(const struct kl_connect *c);

/** All ranks of a ring in order, beginning with `first`: nranks entries. ncclInternalError if it is not a ring. */
ncclResult_t kl_connect_ring_order(const struct kl_connect *c, int channel, int first, int32_t *order);

/**
 * The same for a chain, with ranks that share CPUs next to each other, if the CPUs are known and there is one node: fewer
 * hops lead from core to core. A ring keeps its order: all its ranks are busy at once, so neighbours should not share CPUs.
 */
ncclResult_t kl_connect_chain_order(const struct kl_connect *c, int channel, int first, int32_t *order);

/** NVLS: the heads' tree over nodes and the virtual peers, which are numbered from nranks + 1. -1 for none. */
struct kl_nvls_links {
    int nheads, head; /* head: this rank's number among them, -1 if it is none */
    int down, out;
    int tree_up, tree_down[3];
};
struct kl_nvls_links kl_connect_nvls(const struct kl_connect *c, int channel, int rank);

/** The rank of a node that is a head of NVLS, 0 <= head < nheads. */
int kl_connect_nvls_head(const struct kl_connect *c, int head, int node);

/** CollNet, where it is supported; -1 for none. Arrays hold `nheads` - 1 or fewer, and local ranks. */
struct kl_collnet_links {
    int chain_up, chain_down; /* up: nranks, the network, at the head of the chain */
    int nheads, head, shift, depth, out;
    int up[KL_COLLNET_ARITY], nup, down[KL_COLLNET_ARITY], ndown;
    int heads[KL_COLLNET_HEADS];
};
struct kl_collnet_links kl_connect_collnet(const struct kl_connect *c, int channel, int rank);

/** The ranks that meet in the network: the head of a channel's chain on a node, or the head of this number of CollNetDirect. */
int kl_connect_chain_head(const struct kl_connect *c, int channel, int node);
int kl_connect_direct_head(const struct kl_connect *c, int head, int node);

/** How many ranks of each node CollNet has for heads; 0 without it. */
int kl_connect_collnet_heads(const struct kl_connect *c);

/** Are the heads of CollNetDirect the heads of NVLS? In newer releases they are, if NVLS is on. */
static inline bool kl_connect_shares_heads(const struct kl_connect *c)
{
    return c->nvls && kl_nccl_has(c->nccl, KL_CHANGE_COLLNET_NVLS_HEADS);
}

/** Are the first ranks of CollNet's chains heads? */
bool kl_connect_chains_begin_at_heads(const struct kl_connect *c);

/** "twice", and a reason for people. */
const char *kl_channel_reason_name(int reason);
const char *kl_channel_reason_text(int reason);

/* ---- parts of kl_connect_create ---- */

/** Divide the ranks into nodes (nodes.c). */
ncclResult_t kl_nodes_create(const struct kl_ranks *ranks, struct kl_nodes *nodes);
void kl_nodes_fini(struct kl_nodes *nodes);

/** Ranks of the smallest node. */
int kl_nodes_fewest(const struct kl_nodes *nodes);

/** Fill in the counts of channels, `source` and the steps (channels.c). Needs nodes, aligned graphs, and the supported features. */
void kl_channels_set(struct kl_connect *c, const struct kl_connect_request *request);

static inline int kl_nodes_size(const struct kl_nodes *n, int node)
{
    return n->first[node + 1] - n->first[node];
}

#endif
