/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order.h - the order in which an operation adds (plan/order.h), and where that order changes.
 *
 *     order.c           the question, understood and answered
 *     order_summary.c   in one sentence; sums of elements
 *     order_json.c      all of it as JSON
 *
 * Units:  bytes of the whole (nccl-tests' size), elements.
 * Errors: ncclInvalidArgument for a question that is not understood; ncclInvalidUsage for one that the cluster cannot answer.
 */
#ifndef KL_ANSWER_ORDER_H
#define KL_ANSWER_ORDER_H

#include "answer/coll.h"
#include "plan/order.h"

/** The question as names. */
struct kl_order_question {
    struct kl_coll_question
        op; /* `last` is the operation's size, unless all sizes are asked about (0 and 0): then 64 MiB are */
    const int64_t *group; /* sizes of other operations of its group, which come after it */
    int ngroup;
    int root;
    bool registered; /* registered or captured buffers, out of place */
    bool lint;       /* only lints of the settings in force: other settings are not looked for */
    const char *vs;  /* compare with "64M", "NAME=VALUE" or "2.29.7"; NULL: nothing */
};

struct kl_order_answer {
    struct kl_order_question question;
    struct kl_coll_asked asked; /* of the operation's size */
    int64_t first, last;        /* sizes that are called */
    struct kl_order order;
    struct kl_order_sums sums;
    struct kl_order_difference differs; /* with `vs` */
};

/** Answer for the cluster that `request` opened; both outlive the answer. Free with kl_order_answer_fini, also after a failure. */
ncclResult_t kl_order_answer_make(const struct kl_order_question *question, const struct kl_cluster_request *request,
                                  struct kl_opened *opened, struct kl_order_answer *answer);
void kl_order_answer_fini(struct kl_order_answer *answer);
ncclResult_t kl_order_json(const struct kl_order_answer *answer, FILE *to);

/** The answer in one sentence, without its full stop and the operation. */
void kl_order_summary(const struct kl_order *order, struct kl_text *to);

/** The range of an element of a block; NULL if there is none. */
const struct kl_order_range *kl_order_range_at(const struct kl_order *order, int block, int64_t element);

/** A sum as an expression of ranks. free() it; NULL when memory is short. */
char *kl_order_expression(const struct kl_order *order, int sum);

#endif
