/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order.h - the order in which an operation adds the contributions to each element, and the calls and settings that change it.
 *
 *     order_find.c      the operation, planned and cut: its ranges of elements with their sums
 *     order_verdict.c   is the order the same on all ranks, in other calls, at other places ...
 *     order_cheapest.c  settings that make it the same at all counts
 *     order_lint.c      settings without the effect that they seem to be set for
 *     order_words.c     names and texts
 *
 * Units:   bytes of the whole (nccl-tests' size), elements.
 * Errors:  ncclInvalidUsage for functions that add nothing, more than KL_ORDER_RANKS ranks or KL_ORDER_BYTES.
 * Threads: one at a time.
 * Source:  the specification of the order of summation.
 */
#ifndef KL_PLAN_ORDER_H
#define KL_PLAN_ORDER_H

#include "graph/tuning_ranges.h"
#include "plan/order_ranges.h"
#include "plan/planned.h"

#define KL_ORDER_BYTES (INT64_C(1) << 40) /* the largest operation that is cut */
enum { KL_ORDER_RANKS = 512, KL_ORDER_TEXT = 400, KL_ORDER_SETTINGS = 8, KL_ORDER_LINTS = 20 };

struct kl_order_request {
    int func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int64_t bytes;       /* of the operation */
    int64_t first, last; /* the other sizes that are called */
    const int64_t *more; /* sizes of other operations of the group, which come after it */
    int nmore;
    int root;
    bool registered; /* registered or captured buffers, out of place */
};

enum kl_order_result { KL_ORDER_NO, KL_ORDER_YES, KL_ORDER_UNKNOWN };

enum kl_order_scope {
    KL_ORDER_ON_RANKS,
    KL_ORDER_IN_RUNS,
    KL_ORDER_AT_COUNTS,
    KL_ORDER_BY_TOKEN, /* reduce-scatter: a row that moves to another block */
    KL_ORDER_IN_PLACE,
    KL_ORDER_REGISTERED,
    KL_ORDER_CAPTURED,
    KL_ORDER_IN_GROUP,
    KL_ORDER_ON_HOSTS,
    KL_ORDER_IN_RELEASE,
    KL_ORDER_SCOPES
};

/** The first element whose sum differs, and both sums; element -1: none is known. */
struct kl_order_difference {
    int64_t element, bytes; /* bytes: the other size, 0 if it is the same */
    int block, a, b;
};

struct kl_order_verdict {
    enum kl_order_result answer;
    const char *code;
    char text[KL_ORDER_TEXT];
    struct kl_order_difference differs;
};

/** A setting that makes the order the same at all counts. */
struct kl_order_setting {
    char set[160];               /* "NAME=VALUE NAME=VALUE"; "": nothing is needed */
    enum kl_order_result answer; /* as planned with it; unknown: it was not planned */
    double cost_percent;         /* longer at the size that was asked for; an estimate. Below 0: unknown */
    char text[KL_ORDER_TEXT];
};

struct kl_order_lint {
    const char *code;
    char text[KL_ORDER_TEXT];
};

struct kl_order {
    struct kl_order_request request;
    struct kl_order_rules rules;
    struct kl_order_wires wires;
    struct kl_order_sums *sums; /* the caller's; of several answers, so that they can be compared */
    struct kl_order_group group;
    const struct kl_order_op *op; /* of the group: the one that is asked about */
    struct kl_order_ranges ranges;
    int nsums;                      /* different ones */
    struct kl_tuning_range *choice; /* by size, of all that are called */
    int nchoices;
    int alike_rings, alike_trees; /* channels 0 ... that have equal sums */
    int most_used;                /* channels, at any of the sizes */
    bool exact;                   /* every order gives the same bits */
    bool fewer_registered;        /* registered or captured buffers, out of place, get fewer channels */
    struct kl_order_verdict verdict[KL_ORDER_SCOPES];
    struct kl_order_setting setting[KL_ORDER_SETTINGS];
    int nsettings;
    struct kl_order_lint lint[KL_ORDER_LINTS];
    int nlints;
};

/** Plan, cut and judge. Free with kl_order_fini, also after a failure; `sums` last. */
ncclResult_t kl_order_find(const struct kl_order_request *request, const struct kl_cluster *cluster,
                           const struct kl_planned *planned, struct kl_order_sums *sums, struct kl_order *order);
void kl_order_fini(struct kl_order *order);

/** Add settings that help, each planned for: `cluster` is the request that the order's cluster was opened with. */
ncclResult_t kl_order_find_settings(struct kl_order *order, const struct kl_cluster_request *cluster);

/** Add lints of the cluster's settings. */
void kl_order_find_lints(struct kl_order *order, const struct kl_cluster *cluster);

/** The first common element whose sums differ in two answers about the same function; both have the same `sums`. */
struct kl_order_difference kl_order_compare(const struct kl_order *a, const struct kl_order *b);

/* ---- parts ---- */

/** kl_order_find without the verdicts, and these. */
ncclResult_t kl_order_derive(const struct kl_order_request *request, const struct kl_cluster *cluster,
                             const struct kl_planned *planned, struct kl_order_sums *sums, struct kl_order *order);
void kl_order_judge(struct kl_order *order, const struct kl_planned *planned);

/** The same operation at another size, or with another choice (NULL: the tuning's). Free as kl_order_fini. */
ncclResult_t kl_order_again(const struct kl_order *order, const struct kl_tuning *tuning, int64_t bytes,
                            const struct kl_tuning_choice *forced, struct kl_order *other);

/* ---- words ---- */

const char *kl_order_scope_name(enum kl_order_scope scope);    /* "in_place" */
const char *kl_order_result_name(enum kl_order_result answer); /* "yes" */
const char *kl_order_rounding(const struct kl_order *order);   /* "each_addition", "end", "switch", "network", "none" */
const char *kl_order_accumulator(const struct kl_order *order); /* "bfloat16" */
void kl_order_arithmetic_text(const struct kl_order *order, struct kl_text *text);

/** Does a switch or the network add, in an order that is not documented? */
bool kl_order_undefined(int algo);

#endif
