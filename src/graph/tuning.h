/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning.h - a model of an operation's time with each algorithm and protocol, and the choice of the fastest.
 *
 * The model is computed once per communicator, from numbers that all ranks share, so that all ranks choose alike:
 *
 *     time = latency + bytes / bandwidth        per function, algorithm and protocol; bandwidth 0 means "not available"
 *
 * Two sets of constants: kl_tuning_reference for GPUs, NVLink and InfiniBand, used by offline plans; kl_tuning_host for CPUs
 * and shared memory, used by communicators of host devices.
 *
 * Units:   microseconds, GB/s (1e9 bytes), bytes.
 * Errors:  ncclInvalidUsage for NCCL_ALGO and NCCL_PROTO that do not parse, and for a choice if they exclude every candidate
 *          (the model stays usable); the message lists the valid values.
 * Threads: a model is const once computed.
 * Source:  the graph specification, 11 and 12.3, 12.4.
 */
#ifndef KL_GRAPH_TUNING_H
#define KL_GRAPH_TUNING_H

#include "base/text.h"
#include "graph/connect.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum kl_func {
    KL_FUNC_BROADCAST,
    KL_FUNC_REDUCE,
    KL_FUNC_ALL_GATHER,
    KL_FUNC_REDUCE_SCATTER,
    KL_FUNC_ALL_REDUCE,
    KL_FUNCS /* functions that are tuned */
};

enum kl_algo {
    KL_ALGO_TREE,
    KL_ALGO_RING,
    KL_ALGO_COLLNET_DIRECT,
    KL_ALGO_COLLNET_CHAIN,
    KL_ALGO_NVLS,
    KL_ALGO_NVLS_TREE,
    KL_ALGO_PAT,
    KL_NCCL_ALGOS,                    /* number of NCCL's algorithms */
    KL_ALGO_ONE_SHOT = KL_NCCL_ALGOS, /* of host devices only */
    KL_ALGO_FLAT,                     /* the same */
    KL_ALGOS,                         /* number of modelled algorithms */
    KL_ALGO_ORDERED = KL_ALGOS,
    KL_ALGO_ORDERED_RING, /* on request only (coll/schedule/ordered.h) */
    KL_ALGO_PEER_DIRECT,  /* tried before the choice (coll/zcopy/peer_direct.h) */
    KL_ALGO_NAMES
};

enum { KL_FLAT_RANKS = 64 }; /* of Flat, at most */

enum kl_proto { KL_PROTO_LL, KL_PROTO_LL128, KL_PROTO_SIMPLE, KL_PROTOS };

/* As settings have them; `log_name`: as NCCL's TUNING lines have them. */
extern const char *const kl_func_name[KL_FUNCS];
extern const char *const kl_algo_name[KL_ALGO_NAMES], *const kl_algo_log_name[KL_ALGO_NAMES];
extern const char *const kl_proto_name[KL_PROTOS], *const kl_proto_log_name[KL_PROTOS];

/** A modelled algorithm, apart from its times. */
struct kl_algo_info {
    int graph;        /* the kind that it runs on: KL_GRAPH_... */
    uint32_t funcs;   /* bits: the functions that it is made for */
    uint32_t protos;  /* bits: the protocols */
    bool one_channel; /* an operation of any size uses one channel */
};

/** A row for each; the rows are in tuning_names.c, with the names. */
extern const struct kl_algo_info kl_algo_info[KL_ALGO_NAMES];

static inline int kl_algo_graph(int algo)
{
    return kl_algo_info[algo].graph;
}

/* ---- constants ---- */

enum kl_hw { KL_HW_NVLINK, KL_HW_PCI, KL_HW_NET, KL_HWS };
enum { KL_GENERATIONS = 4, KL_TREE_SIZES = 24, KL_TREE_OWN_SIZES = 23, KL_TUNING_TEXT = 128 };

struct kl_tuning_constants {
    const char *name;
    int algos; /* the first so many of enum kl_algo exist */
    float base_latency[KL_ALGOS][KL_PROTOS];
    float hw_latency[KL_HWS][KL_ALGOS][KL_PROTOS];
    /* Rows: sm below 80, 90, 100, and above. Columns: one node, two, more. */
    double ll_max[KL_GENERATIONS][3];       /* GB/s of LL, all channels together */
    double ring_ll128[KL_GENERATIONS][3];   /* GB/s per channel */
    double tree_ll128[KL_GENERATIONS][3];   /* GB/s per channel */
    double tree[KL_GENERATIONS][3];         /* GB/s per channel, all protocols */
    double nvls_tree[KL_GENERATIONS][3];    /* GB/s per channel */
    double nvls_efficiency[KL_GENERATIONS]; /* of the bandwidth within a node */
    float tree_share[KL_PROTOS]
                    [KL_TREE_SIZES]; /* of a tree's bandwidth, for 64 B, 128 B, ... 256 MB, and for NVLSTree 512 MB */
    float small_ring_bw;             /* GB/s of all channels up to which a ring uses 256 threads */
    double pat_base, pat_rank;       /* latency of PAT: to start, and for each rank */
    float one_shot_peer[2];          /* OneShot: microseconds for each peer within the node, and outside */
    float one_shot_round; /* OneShot, of a node: us for each other rank on a core, in each further exchange */
    float one_shot_bw;    /* GB/s, of all messages to peers within the node, at most */
    float flat_peer;      /* Flat: microseconds for each other rank */
    float flat_bw;        /* GB/s that a rank writes to and reads from shared memory */
    float flat_moved
        [KL_FUNCS]
        [4]; /* bytes that are moved per byte of the operation: with 2, to 4, and 8 ranks; for each further rank */
    /* NVLS and PAT reduce in software: every type and operation, scaled or not, and FP8 whatever the sm. */
    bool any_reduction;
    /* CollNet reduces in software too: all-gather and reduce-scatter work, whatever the plugin offers. */
    bool collnet_gathers;
    /* The constants change with the release of NCCL that is followed (kl_tuning_constants_at). Measured constants do not: the
     * rules of the first release apply. */
    bool follows_nccl;
};

extern const struct kl_tuning_constants kl_tuning_reference;
extern const struct kl_tuning_constants kl_tuning_host;

/** Constants as a release has them. */
struct kl_tuning_constants kl_tuning_constants_at(const struct kl_tuning_constants *constants, int nccl);

/* ---- NCCL_ALGO and NCCL_PROTO ---- */

/**
 * Parse `[function:][^]name,name;function:...` over a table of names: for the functions of an entry, `on[func][i]` becomes
 * 1 for listed names and 0 for others (the other way round after ^). `what` names the variable in errors. On failure `on`
 * is unchanged.
 */
ncclResult_t kl_tuning_parse(const char *what, const char *text, const char *const *names, int nnames,
                             int on[KL_FUNCS][KL_ALGOS]);

/* ---- the model ---- */

struct kl_tuning_measured; /* times of this machine: tuning_measured.h */

/** The user's settings; texts may be NULL. -2 is "not set". */
struct kl_tuning_params {
    const char *algo, *proto;         /* NCCL_ALGO, NCCL_PROTO */
    const char *thread_thresholds;    /* NCCL_THREAD_THRESHOLDS */
    int64_t nthreads, ll128_nthreads; /* NCCL_NTHREADS, NCCL_LL128_NTHREADS */
    int64_t pat;                      /* NCCL_PAT_ENABLE: 0, 1, 2 */
    int64_t ll128_c2c;                /* NCCL_LL128_C2C: 0, 1 */
    int64_t net_overhead;             /* NCCL_NET_OVERHEAD, nanoseconds */
};

#define KL_TUNING_PARAMS                                                                                               \
    ((struct kl_tuning_params){.nthreads = -2, .ll128_nthreads = -2, .pat = 2, .ll128_c2c = 1, .net_overhead = -2})

/** The inputs of the model, equal on all ranks. */
struct kl_tuning_input {
    int nccl; /* the release that is followed */
    int nranks, nnodes, min_local_ranks, max_local_ranks;
    int ranks_per_cpu; /* of the only node, rounded up; 0: it is not known, or there are several */
    int nchannels, nvls_channels;
    int min_sm, max_sm;
    int cpu_arch, cpu_vendor;
    struct kl_graph_facts graph[KL_GRAPHS];
    int max_tree_pattern;
    bool nvs;                             /* the machine has an NVSwitch */
    bool nvls, collnet;                   /* supported */
    enum kl_offload no_nvls, no_collnet;  /* why not; for explanations */
    float net_bw;                         /* GB/s to the slowest NIC of any rank; 0 without */
    int collnet_heads;                    /* different heads; 0 without */
    bool chains_elsewhere;                /* CollNet's chains begin at ranks that are none */
    bool collnet_gather, collnet_scatter; /* the plugin offers all-gather, reduce-scatter */
    bool net_is_host;                     /* the network device is an ordinary one: PAT may be used by default */
    bool cuda11;                          /* built for CUDA 11: one LL128 restriction more */
    /* Of the own machine, for expected times (expected.h), which decide nothing: ranks may differ. */
    float gpu_bw;             /* GB/s of all NVLinks of a GPU, or of its other links */
    bool net_tcp, net_staged; /* a NET carries data over TCP; a NET cannot reach GPU memory */
    /* Measured times that all ranks have, for host constants within a host; NULL: none. They must outlive the model. */
    const struct kl_tuning_measured *measured;
};

/** The inputs from the joined graphs; the caller adds min_sm and max_sm. `topo`: the own machine. */
struct kl_tuning_input kl_tuning_input_of(const struct kl_connect *connect, const struct kl_topo *topo);

/** The rule that excludes an algorithm and protocol; if several do, the first of these. */
enum kl_tuning_refusal {
    KL_TUNING_ALLOWED,
    /* Whatever the operation. */
    KL_REFUSED_ONE_RANK,        /* nothing is sent, so there is no model */
    KL_REFUSED_FUNC,            /* the algorithm is not made for the function */
    KL_REFUSED_PROTO,           /* nor for the protocol */
    KL_REFUSED_PAT_OFF,         /* NCCL_PAT_ENABLE=0 */
    KL_REFUSED_PAT_SM,          /* a GPU before sm 60 */
    KL_REFUSED_PAT_RANKS,       /* by default: one rank per node only */
    KL_REFUSED_PAT_NET,         /* by default: ordinary network devices only */
    KL_REFUSED_NO_GRID,         /* OneShot */
    KL_REFUSED_NO_SHM_EXCHANGE, /* Flat: several nodes, or more than KL_FLAT_RANKS */
    KL_REFUSED_NO_COLLNET,      /* see kl_tuning_input.no_collnet */
    KL_REFUSED_CHAIN_HEADS,     /* CollNetChain: see kl_tuning_input.chains_elsewhere */
    KL_REFUSED_NO_NVLS,         /* see kl_tuning_input.no_nvls */
    KL_REFUSED_NO_NVSWITCH,     /* CollNetDirect */
    KL_REFUSED_NVLS_NODES,      /* NVLS leaves a node through CollNet only */
    KL_REFUSED_ONE_NODE,        /* NVLSTree */
    KL_REFUSED_BY_ALGO,         /* NCCL_ALGO */
    KL_REFUSED_BY_PROTO,        /* NCCL_PROTO */
    KL_REFUSED_LL128_INTER,     /* the path to a NIC may tear stores */
    KL_REFUSED_LL128_INTRA,     /* or the path between GPUs */
    KL_REFUSED_LL128_MIXED,     /* GPUs of different generations */
    KL_REFUSED_LL128_SM,        /* a generation that is not known to keep stores whole */
    KL_REFUSED_LL128_CUDA11,    /* two ranks' ring on sm 90, built for CUDA 11 */
    KL_REFUSED_COLLNET_GATHER,  /* the network can't gather or scatter */
    KL_REFUSED_COLLNET_HEADS,   /* more ranks per node than heads */
    KL_REFUSED_NO_GRAPH,        /* the search found no channels */
    /* For this operation. */
    KL_REFUSED_COLLNET_OP,    /* the network can't reduce this type so */
    KL_REFUSED_COLLNET_LOCAL, /* CollNetDirect, in newer releases also the chain: more than eight ranks of a node */
    KL_REFUSED_NVLS_OP,       /* the NVSwitch can't reduce this type so */
    KL_REFUSED_NVLS_GATHER,   /* all-gather and reduce-scatter: up to 32 ranks of a node; in older releases one node */
    KL_REFUSED_PAT_OP,        /* reduce-scatter with values scaled before or after */
    KL_REFUSALS
};

/** The parts of a latency, microseconds. */
struct kl_tuning_latency {
    float base;            /* to start, whatever the number of ranks */
    float inside, between; /* hops inside of nodes, and between them */
    float extra;           /* additional cost of each rank */
    int inside_hops, between_hops;
};

struct kl_tuning {
    const struct kl_tuning_constants *constants; /* as named */
    struct kl_tuning_constants at;               /* as of the release */
    bool ll128_c2c;                              /* NCCL_LL128_C2C */
    struct kl_tuning_input in;
    float latency[KL_FUNCS][KL_ALGOS][KL_PROTOS];
    float bandwidth[KL_FUNCS][KL_ALGOS][KL_PROTOS];
    struct kl_tuning_latency parts[KL_FUNCS][KL_ALGOS][KL_PROTOS]; /* of the latency */
    uint8_t refusal[KL_FUNCS][KL_ALGOS][KL_PROTOS];                /* enum kl_tuning_refusal: why bandwidth is 0 */
    int max_threads[KL_ALGOS][KL_PROTOS];
    int64_t threshold[KL_ALGOS][KL_PROTOS];           /* bytes per thread before another thread or channel pays */
    bool forced;                                      /* NCCL_ALGO or NCCL_PROTO is set */
    char algo[KL_TUNING_TEXT], proto[KL_TUNING_TEXT]; /* NCCL_ALGO and NCCL_PROTO, perhaps cut */
};

ncclResult_t kl_tuning_compute(const struct kl_tuning_constants *constants, const struct kl_tuning_input *in,
                               const struct kl_tuning_params *params, struct kl_tuning *tuning);

/* ---- the choice ---- */

/** An operation, or several of a kind that share a choice. */
struct kl_tuning_op {
    int func;
    int64_t bytes;  /* of the whole: count * ranks * size for all-gather and reduce-scatter, count * size otherwise */
    int npipe;      /* operations of the group per channel, at least 1 */
    bool nvls;      /* an NVSwitch can reduce this type and operation */
    bool collnet;   /* the network can */
    bool prescaled; /* pre-multiplied sum or sum-then-divide: PAT of GPUs can't reduce-scatter these */
    bool fp8;
};

/**
 * The operation of a call. `collnet` is assumed: only the plugin knows which reductions its network can do.
 * Source: the graph specification, 12.1 and 12.3.
 */
struct kl_tuning_op kl_tuning_op_of(int func, int64_t bytes, ncclDataType_t type, ncclRedOp_t op);

/** Bus bandwidth is this many times algorithm bandwidth, the size by the time: the load of links, as nccl-tests define it. */
double kl_tuning_bus_factor(int func, int nranks);

/** NCCL refuses FP8 on GPUs before this sm; 0 for other types, and where it makes no difference. */
int kl_tuning_type_sm(const struct kl_tuning_constants *constants, ncclDataType_t type);

struct kl_tuning_choice {
    int algo, proto;
    int nchannels, nthreads;
    float time;
};

/**
 * The fastest available choice, its channels and threads. `cost`, when not NULL, receives all times (-1: not
 * considered), which a caller may change and pass to kl_tuning_pick.
 */
ncclResult_t kl_tuning_choose(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_tuning_choice *choice,
                              float cost[KL_ALGOS][KL_PROTOS]);

/**
 * The cheapest of a table of times. If it holds none: ncclInvalidUsage if NCCL_ALGO or NCCL_PROTO is set, naming both and
 * the candidates, else ncclInternalError.
 */
ncclResult_t kl_tuning_pick(const struct kl_tuning *t, const struct kl_tuning_op *op,
                            const float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice);

/** Channels and threads for `choice`, of which algorithm and protocol are set. */
void kl_tuning_size(const struct kl_tuning *t, int64_t bytes, struct kl_tuning_choice *choice);

/* ---- explanations ---- */

/** The terms of a time, microseconds: they add up to `time`, which the choice compares. */
struct kl_tuning_terms {
    struct kl_tuning_latency latency;
    float correction; /* the longer start of large ring operations over several nodes */
    float group;      /* latency of the other operations of the group */
    float transfer;   /* the bytes, at `bandwidth` */
    float fp8;        /* the penalty of long rings, which lose the precision of FP8 sums */
    float time;
    float modelled; /* the time without measurements */
    bool measured;  /* is the time measured, or scaled as the ring's? Then it starts, and transfers */

    float bandwidth; /* GB/s at this size: of the model, times tree_share */
    float tree_share, latency_factor;
    bool timeless_hops; /* the model knows no latency for its hops inside, and takes 0: the time is too short */
};

/** For a candidate that is not refused. */
void kl_tuning_terms(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                     struct kl_tuning_terms *terms);

/** The rule that excludes a candidate for this operation: its cost is -1. */
enum kl_tuning_refusal kl_tuning_refused(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto);

/** The candidates if NCCL_ALGO and NCCL_PROTO allowed them: "Ring (LL, LL128, Simple), PAT (Simple)", or "nothing". */
void kl_tuning_candidates_text(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_text *text);

/** "ll128_intra". */
const char *kl_tuning_refusal_name(enum kl_tuning_refusal why);

/** A sentence without an end, with the facts of this communicator. */
void kl_tuning_refusal_text(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                            struct kl_text *text);

/** The smallest size above `bytes` from which on other corrections apply; INT64_MAX if there is none. */
int64_t kl_tuning_next_step(const struct kl_tuning *t, int64_t bytes);

#endif
