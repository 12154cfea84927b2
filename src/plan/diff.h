/* SPDX-License-Identifier: Apache-2.0 */
/**
 * diff.h - two plans side by side: the differences, and the fact that causes each.
 *
 *     diff.c            open both sides, gather
 *     diff_facts.c      differences of the machines and settings
 *     diff_document.c   comparison of the documents of two machines
 *     diff_links.c      comparison of NVLinks
 *     diff_list.c       the list of facts, and applying some of them to a document
 *     diff_rules.c      their effect on the library: rules, paths, NICs
 *     diff_plans.c      and further: graphs, channels, tuning
 *     diff_rows.c       the list of these
 *     diff_cause.c      the smallest set of facts that has these consequences
 *     diff_release.c    changes between two releases of NCCL with these consequences
 *     diff_effect.c     the consequences to name, or why there are none
 *
 * Side A is the first. GPUs and NETs are named as in A by rank and device number; names that A does not have are as in
 * B. GPUs of both sides are the same if their bus ids are, or if too few of these agree, if their ranks are.
 *
 * A *fact* is a difference of the inputs; it can be applied to A alone. A *row* is an answer that differs.
 *
 * Units:   microseconds, GB/s, bytes.
 * Threads: const once found.
 */
#ifndef KL_PLAN_DIFF_H
#define KL_PLAN_DIFF_H

#include "plan/planned.h"
#include "transport/transport.h"

/* ---- the sides ---- */

struct kl_diff_side {
    const struct kl_cluster_request *request;
    struct kl_cluster cluster;
    struct kl_planned planned;
    struct kl_topo *whole;   /* before trimming */
    struct kl_xml *document; /* in document order, so that a clone has the same indices */
    int *to_a;               /* B: by rank of its first host, the rank in A; -1 */
    int *to_b;               /* A: the other way */
};

/* ---- facts ---- */

enum kl_fact_kind {
    KL_FACT_SETTING,
    KL_FACT_LINK,
    KL_FACT_GPU,
    KL_FACT_NET,
    KL_FACT_ATTRIBUTE,
    KL_FACT_MACHINE,
    KL_FACT_KINDS
};

enum kl_fact_change {
    KL_CHANGE_SETTING,
    KL_CHANGE_LINKS,     /* another number of NVLinks */
    KL_CHANGE_ATTRIBUTE, /* another value */
    KL_CHANGE_GONE,      /* in A only */
    KL_CHANGE_NEW,       /* in B only */
    KL_CHANGE_MOVED,     /* a NET that B has below another device: removed from its place in A */
    KL_CHANGE_ARRIVED,   /* and added at its place in B */
    KL_CHANGE_ORDER,     /* the same GPUs have other ranks */
    KL_CHANGE_MACHINE    /* too much */
};

/** The effect of a change alone, applied to A, on A's plan. */
enum kl_fact_effect {
    KL_EFFECT_UNTRIED,
    KL_EFFECT_ALL,  /* B's */
    KL_EFFECT_PART, /* another one */
    KL_EFFECT_NOTHING,
    KL_FACT_EFFECTS
};

/** A part of a machine, by name. */
enum kl_part_kind { KL_PART_GPU, KL_PART_NET, KL_PART_PCI, KL_PART_CPU, KL_PART_OTHER };
struct kl_part {
    enum kl_part_kind kind;
    int number; /* rank, device number, NUMA node */
    bool of_b;  /* GPU: the rank is B's, as A has no such GPU */
    int host;   /* PCI, CPU */
    uint64_t busid;
    const char *tag; /* other: of its element */
};

enum { KL_LINK_END_NONE = -1, KL_LINK_END_NVS = -2, KL_LINK_END_CPU = -3 };

struct kl_fact {
    enum kl_fact_kind kind;
    enum kl_fact_change change;
    int nmerged; /* number of equal facts that it represents */
    enum kl_fact_effect alone;

    /* attributes, and removed, added or moved elements */
    struct kl_part part;
    int nparts;              /* GPUs and NETs removed or added with it; `part` is the first */
    bool c2c;                /* the element is a C2C link of the part */
    const char *key, *a, *b; /* values, NULL where absent */

    /* links */
    int ends[2];        /* ranks in A, or KL_LINK_END_... */
    int links[2], ways; /* numbers in A and B, and the directions with these numbers */
    float gbps;         /* of one of them */

    /* settings */
    int setting;                  /* index in B's edits; -1 */
    const struct kl_param *param; /* NULL: a name that is no parameter of Kolo */
    bool was_set;                 /* set in A; else the default is in force there */
    struct kl_setting was;
};

/** An edit that turns A's document into B's: `b` is -1 to remove, `a` the parent of the copied element; else attribute
 * `key` is copied. */
struct kl_doc_op {
    int fact, a, b;
    char key[32]; /* "" for whole elements */
};

struct kl_facts {
    struct kl_fact *fact;
    struct kl_doc_op *op;
    int nfacts, max_facts, nops, max_ops;
    bool comparable;  /* facts can be applied one by one */
    bool same_source; /* one machine is compared with itself: its differences follow from settings or releases, and are
                      * no facts */
    int meaningless;  /* differences of the documents without effect on the library; they are no facts */
};

/** Are two facts the same about different things? */
bool kl_fact_alike(const struct kl_fact *x, const struct kl_fact *y);

/* ---- rows ---- */

/** In causal order: each follows from those before it. */
enum kl_diff_stage {
    KL_STAGE_RULES,
    KL_STAGE_PATHS,
    KL_STAGE_GRAPHS,
    KL_STAGE_NICS,
    KL_STAGE_CHANNELS,
    KL_STAGE_TUNING,
    KL_STAGES
};

enum kl_diff_what {
    KL_ROW_TRANSPORT,
    KL_ROW_RELAY,
    KL_ROW_GDR,
    KL_ROW_GPU_GPU,
    KL_ROW_GPU_NET,
    KL_ROW_NET_GPU,
    KL_ROW_GRAPH,
    KL_ROW_ORDER,
    KL_ROW_NIC,
    KL_ROW_SEND,
    KL_ROW_CHANNELS,
    KL_ROW_TUNING,
    KL_ROW_WHATS
};
enum kl_diff_stage kl_row_stage(enum kl_diff_what what);

/** Numbers of a graph. */
enum kl_graph_number {
    KL_NUMBER_CHANNELS,
    KL_NUMBER_BW_INTRA,
    KL_NUMBER_BW_INTER,
    KL_NUMBER_TYPE_INTRA,
    KL_NUMBER_TYPE_INTER,
    KL_NUMBER_PATTERN,
    KL_NUMBER_CROSS_NIC,
    KL_NUMBER_ONE_ORDER,
    KL_GRAPH_NUMBERS
};

/** The channels of a kind of operation. */
enum kl_channel_count {
    KL_COUNT_RANKS,
    KL_COUNT_NODES,
    KL_COUNT_CHANNELS,
    KL_COUNT_COLLECTIVES,
    KL_COUNT_NVLS,
    KL_COUNT_SENDRECV,
    KL_COUNT_PER_PEER,
    KL_CHANNEL_COUNTS
};

/** The choice for an operation. */
enum kl_choice_end {
    KL_CHOICE_MADE,
    KL_CHOICE_NOTHING, /* NCCL_ALGO and NCCL_PROTO leave no choice */
    KL_CHOICE_COPY     /* one rank sends nothing */
};

enum { KL_ROWS_LISTED = 2048, KL_ROW_NICS = KL_MAX_CHANNELS }; /* rows of each kind; more are only counted */

/** A GPU in between, by its rank in A; `of_b`: A does not have it, and the rank is B's. */
struct kl_diff_relay {
    bool used, of_b;
    int rank;
};

/** An answer; the row's kind selects the member. Ranks are A's. */
union kl_diff_value {
    struct {
        const struct kl_transport *by; /* NULL: the network */
        struct kl_diff_relay via;
    } transport;
    struct kl_diff_relay relay;
    struct {
        bool send, receive, pci;
    } gdr;
    struct {
        int type;
        float bw;
    } path;
    struct {
        bool none; /* there is no such graph */
        float value;
    } number;
    struct kl_diff_order {
        const struct kl_graph *graph;
        int channel;
        bool nets;
        const int *to_a; /* NULL: the graph's ranks are A's */
    } order;
    struct {
        int n;
        int16_t dev[KL_ROW_NICS];
    } nics;
    struct {
        int net; /* device number; -1: there is none */
        struct kl_diff_relay proxy;
    } send;
    int count;
    struct {
        enum kl_choice_end end;
        int algo, proto, nchannels, nthreads;
        bool only_threads; /* nothing but the number of threads differs */
        float time;
        bool timeless; /* it ignores hops: struct kl_tuning_terms */
    } choice;
};

struct kl_diff_row {
    enum kl_diff_what what;
    int from, to;  /* the two ends: GPU ranks, or NETs as -2 - dev; -1 for none */
    int domain;    /* graphs: the rank whose machine they belong to; -1: rank 0's */
    int graph;     /* enum kl_graph_id */
    int item;      /* enum kl_graph_number, channel, enum kl_channel_count, or enum kl_func */
    int64_t bytes; /* tuning */
    union kl_diff_value a, b;
};

struct kl_diff_rows {
    struct kl_diff_row *row;
    int nrows, max_rows;
    long compared[KL_ROW_WHATS], changed[KL_ROW_WHATS];
};

/** Number of GPUs that a channel visits, and the `i`-th; `of_b`: A does not have it, and the rank is B's. */
int kl_diff_order_length(const struct kl_diff_order *order);
int kl_diff_order_rank(const struct kl_diff_order *order, int i, bool *of_b);

/** The device number of the NET it enters (0) or leaves (1) through. */
int kl_diff_order_net(const struct kl_diff_order *order, int end);

/** Are two rows the same for different subjects? The GPU or NIC of an answer does not count. */
bool kl_rows_alike(const struct kl_diff_row *r, const struct kl_diff_row *s);

/* ---- the answer ---- */

enum kl_diff_effect_kind {
    KL_DIFF_ANSWER,       /* a rule has another answer: `row`, and `nalike` rows alike */
    KL_DIFF_LOST,         /* `graph` is not found any more */
    KL_DIFF_GONE,         /* `graph` does not exist any more */
    KL_DIFF_APPEARED,     /* `graph` exists now */
    KL_DIFF_NUMBERS,      /* `graph` has other channels or bandwidths */
    KL_DIFF_PATHS,        /* `graph` has other paths inside, at the same bandwidth */
    KL_DIFF_KEPT,         /* the graphs keep their channels and bandwidths */
    KL_DIFF_REORDERED,    /* the graphs only have another order */
    KL_DIFF_COUNT,        /* `row` */
    KL_DIFF_TIME,         /* `row` */
    KL_DIFF_GRAPH_NUMBER, /* `row` */
    KL_DIFF_UNCHANGED     /* graphs and times stay as they are */
};

/** The change of P2P's reach, if it changed. */
enum kl_diff_reach { KL_REACH_SAME, KL_REACH_OFF, KL_REACH_OTHER };

struct kl_diff_effect {
    enum kl_diff_effect_kind kind;
    const struct kl_diff_row *row;
    int nalike; /* the row among them */
    int graph;  /* enum kl_graph_id */
    enum kl_diff_reach reach;
    int level_a, level_b; /* enum kl_path_type */
};

/** Why nothing changes. */
enum kl_diff_why {
    KL_SAME_MEANINGLESS,  /* a plan does not use the differing part of the file */
    KL_SAME_INPUT,        /* nothing differs */
    KL_SAME_RELEASES,     /* nothing but the release of NCCL, and none of the changes matters */
    KL_SAME_SEVERAL,      /* several facts, and none is used, or enough is left */
    KL_SAME_OTHER_NAME,   /* the setting does not concern plans: `param_name` */
    KL_SAME_NO_PARAMETER, /* NCCL has the setting, in Kolo it has no effect */
    KL_SAME_VALUE,        /* it was so before */
    KL_SAME_NO_RULE,      /* no rule that reads it has another answer */
    KL_SAME_LINK_LEFT,    /* the remaining links are wide enough for the graphs */
    KL_SAME_LINK_UNUSED,  /* no ring and no tree goes over it */
    KL_SAME_NO_NETWORK,   /* all ranks are in one machine */
    KL_SAME_UNUSED        /* no graph uses the changed part */
};

enum { KL_DIFF_EFFECTS = 8, KL_FACTS_TRIED = 12 };

/** A change between the releases that the sides follow (topo/release.h). */
struct kl_diff_change {
    enum kl_change change;
    enum kl_fact_effect alone; /* of A with this change as in B */
    bool needed;               /* B with this change as in A has another plan */
};

struct kl_diff {
    struct kl_diff_side a, b;
    struct kl_facts facts;
    struct kl_diff_rows rows;
    struct kl_diff_change change[KL_CHANGES];
    int nchanges;         /* the sides follow different releases */
    bool changes_tried;   /* else `alone` and `needed` are unknown */
    bool *in_cause;       /* by fact */
    bool verified;        /* planning with the cause alone gave B's plan */
    bool nothing_changes; /* graphs, NICs, channels and tuning are as they were */

    struct kl_diff_effect effect[KL_DIFF_EFFECTS]; /* the first to name */
    int neffects;
    enum kl_diff_why why;  /* nothing changes: the reason */
    const char *why_other; /* KL_SAME_OTHER_NAME: the programs that read the setting, and its purpose */
    bool paths_change;     /* nothing changes but paths */
};

/** Compare two clusters; the requests must outlive the diff. Free with kl_diff_fini, also after a failure. */
ncclResult_t kl_diff_find(const struct kl_cluster_request *a, const struct kl_cluster_request *b, struct kl_diff *diff);
void kl_diff_fini(struct kl_diff *diff);

/** Does a change between the releases have consequences here? */
bool kl_diff_change_matters(const struct kl_diff_change *change);

/** A graph of rank 0's machine; NULL if there is none. */
const struct kl_graph *kl_diff_graph(const struct kl_diff_side *side, int id);

/** Is a fact the first of equal ones in the cause? `n`: their number. */
bool kl_diff_leads(const struct kl_diff *diff, int fact, int *n);

#endif
