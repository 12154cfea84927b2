/* SPDX-License-Identifier: Apache-2.0 */
/**
 * diff.h - two plans side by side: what differs, and which difference it comes from.
 *
 *     diff.c          the question: open both sides, gather, print
 *     diff_facts.c    how the machines and settings differ (kl_diff_facts)
 *     diff_doc.c      the part of it that compares the documents of two machines
 *     diff_links.c    and the part of that which compares NVLinks
 *     diff_rows.c     what the library makes of them: rules, paths, NICs
 *     diff_plan.c     and further: graphs, channels, tuning
 *     diff_cause.c    the smallest set of differences that has these consequences
 *     diff_say.c      both in one sentence: the first line
 *     diff_why.c      the first line when nothing changes
 *     diff_text.c     for people
 *     diff_json.c     for programs
 *
 * Names: GPU/<rank> and NET/<dev> as side A has them; what A does not have is named as in B. GPUs of both sides are the
 * same if their bus ids are, or if too few of these agree, if their ranks are.
 *
 * A *fact* is a way in which the inputs differ; it can be applied to A alone. A *row* is an answer that came out otherwise.
 */
#ifndef KOLO_TOOL_EXPLAIN_DIFF_H
#define KOLO_TOOL_EXPLAIN_DIFF_H

#include "plan/cluster.h"
#include "plan/planned.h"

#include <stdio.h>

/* ---- the sides ---- */

struct kl_diff_side {
    const struct kl_cluster_request *args;
    struct kl_cluster cluster;
    struct kl_planned planned;
    struct kl_topo *whole;   /* before trimming */
    struct kl_xml *document; /* in document order, so that a clone has the same indices */
    int *to_a;               /* B: by rank of its first host, the rank in A; -1 */
    int *to_b;               /* A: the other way */
};

/** Open one side; then, with both open, find out which GPUs are the same. `comparable`: is it the same machine, more or less? */
ncclResult_t kl_diff_open(const struct kl_cluster_request *args, struct kl_diff_side *side);
ncclResult_t kl_diff_match(struct kl_diff_side *a, struct kl_diff_side *b, bool *comparable);
void kl_diff_close(struct kl_diff_side *side);

/** The topology a rank plans with, and its index there. */
const struct kl_topo *kl_diff_topo(const struct kl_diff_side *side, int rank, int *gpu);

/* ---- facts ---- */

enum kl_fact_kind { KL_FACT_SETTING, KL_FACT_LINK, KL_FACT_GPU, KL_FACT_NET, KL_FACT_ATTRIBUTE, KL_FACT_MACHINE };
enum kl_fact_verdict { KL_VERDICT_UNTRIED, KL_VERDICT_ALL, KL_VERDICT_PART, KL_VERDICT_NOTHING };

enum { KL_FACT_TEXT = 192, KL_FACT_VALUE = 64, KL_FACTS_TRIED = 12 };

struct kl_fact {
    int kind;
    char subject[KL_FACT_VALUE]; /* "GPU/0-GPU/3", "NCCL_P2P_LEVEL" */
    char what[KL_FACT_VALUE];    /* "NVLinks", "speed" */
    char a[KL_FACT_VALUE], b[KL_FACT_VALUE];
    char text[KL_FACT_TEXT];      /* a clause: "GPU/0-GPU/3 lost 1 of 2 NVLinks (40 to 20 GB/s)" */
    char predicate[KL_FACT_TEXT]; /* the clause without its subject: facts that share it can be one */
    int ends[2];                  /* of a link: ranks in A, or KL_END_NVS, KL_END_CPU */
    int links[2], ways;           /* of a link: how many in A and B, and in how many directions that is so */
    float gbps;                   /* of one of them */
    int setting;                  /* index of the --with, -1 */
    int nmerged;                  /* how many facts it stands for */
    enum kl_fact_verdict verdict; /* of this fact alone applied to A */
};

enum { KL_END_NONE = -1, KL_END_NVS = -2, KL_END_CPU = -3 };

/** What turns A's document into B's: `b` is -1 to remove, `a` the parent of what is copied; else attribute `key` is taken over. */
struct kl_doc_op {
    int fact, a, b;
    char key[32]; /* "" for whole elements */
};

struct kl_facts {
    struct kl_fact *fact;
    struct kl_doc_op *op;
    int nfacts, max_facts, nops, max_ops;
    bool comparable; /* facts can be applied one by one */
    int meaningless; /* differences of the documents that the library makes nothing of; they are no facts */
};

ncclResult_t kl_diff_facts(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts);
ncclResult_t kl_diff_documents(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts);
ncclResult_t kl_diff_nvlinks(const struct kl_xml *a, const struct kl_xml *b, int gpu_a, int gpu_b,
                             struct kl_facts *facts);
uint64_t kl_doc_host(const struct kl_xml *xml, int elem); /* the host hash of an element; 0 for none */
void kl_facts_free(struct kl_facts *facts);

/** Append an empty fact; NULL when memory is short. */
struct kl_fact *kl_facts_add(struct kl_facts *facts, int kind);
ncclResult_t kl_facts_add_op(struct kl_facts *facts, int fact, int a, int b, const char *key);

/** Apply the facts with use[i] to a clone of A's document. */
ncclResult_t kl_facts_apply(const struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b,
                            const bool *use, struct kl_xml **document);

/* ---- rows ---- */

/** In the order of the chain: each follows from those before it. */
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

/** What kinds of rows there are, and what their values mean. */
struct kl_row_kind {
    const char *name; /* in JSON */
    int stage;
    const char *text_key, *number_key; /* of values in JSON; NULL: the value itself */
    const char *unit;                  /* of numbers */
    bool grouped;                      /* in text: rows with the same values are one */
    const char *title, *entries;       /* in text: above the rows, and in the totals */
};
extern const struct kl_row_kind kl_row_kinds[KL_ROW_WHATS];
extern const char *const kl_stage_name[KL_STAGES];

enum { KL_ROW_TEXT = 96, KL_ROWS_LISTED = 2048 }; /* of each kind; more are only counted */

struct kl_diff_value {
    char text[KL_ROW_TEXT]; /* "" for none */
    bool has_number;
    uint64_t digest; /* of what the text had no room for */
    bool timeless;   /* a time that leaves hops out: struct kl_tuning_terms */
    float number;
};

struct kl_diff_row {
    int what;
    int from, to; /* what the subject joins: GPU ranks in A, or NETs as -2 - dev; -1 for none */
    char subject[48];
    struct kl_diff_value a, b;
};

struct kl_diff_rows {
    struct kl_diff_row *row;
    int nrows, max_rows;
    long compared[KL_ROW_WHATS], changed[KL_ROW_WHATS];
};

/** Do two rows say the same of different subjects? Which GPU or NIC an answer names does not count. */
bool kl_rows_alike(const struct kl_diff_row *r, const struct kl_diff_row *s);

/** Four digits, and never an exponent where a person would write none. */
const char *kl_diff_number(float number, char text[24]);

/** Count a comparison, and keep it if it came out otherwise. */
ncclResult_t kl_rows_compare(struct kl_diff_rows *rows, int what, const char *subject, int from, int to,
                             const struct kl_diff_value *a, const struct kl_diff_value *b);

ncclResult_t kl_diff_rules(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_diff_rows *rows);
ncclResult_t kl_diff_plans(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_diff_rows *rows);

/** The sizes that tuning is compared for, and "64 MiB". */
enum { KL_DIFF_SIZES = 5 };
extern const int64_t kl_diff_size[KL_DIFF_SIZES];
const char *kl_diff_size_text(int64_t bytes, char text[16]);

/* ---- everything ---- */

struct kl_diff {
    struct kl_diff_side a, b;
    struct kl_facts facts;
    struct kl_diff_rows rows;
    bool *in_cause;       /* by fact */
    bool verified;        /* planning with the cause alone gave B's plan */
    bool nothing_changes; /* graphs, NICs, channels and tuning are as they were */
    char cause[512], effect[512];
    char why[256]; /* nothing changes: why not */
};

/** Decide on the cause, and put cause and effect into words. */
ncclResult_t kl_diff_find_cause(struct kl_diff *diff);
void kl_diff_say(struct kl_diff *diff);
void kl_diff_say_why(struct kl_diff *diff);

void kl_diff_text(const struct kl_diff *diff, FILE *to);
ncclResult_t kl_diff_json(const struct kl_diff *diff, FILE *to);

#endif
