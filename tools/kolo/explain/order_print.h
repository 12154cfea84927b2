/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_print.h - the order of summation (plan/order.h) for people and for programs.
 *
 *     order.c        the command line: the operation, its group, and the other plan of --vs
 *     order_text.c   for people
 *     order_json.c   for programs
 */
#ifndef KOLO_TOOL_EXPLAIN_ORDER_PRINT_H
#define KOLO_TOOL_EXPLAIN_ORDER_PRINT_H

#include "plan/order.h"
#include "tools/kolo/explain/coll_print.h"

/** An answer, and one about the same elements to compare with. */
struct kl_order_answered {
    const struct kl_coll_asked *asked;
    const struct kl_order *order;
    const char *vs; /* as it was asked; NULL: nothing to compare with */
    struct kl_order_difference differs;
    const int64_t *element; /* whose sums are printed */
    int nelements;
    bool lint; /* print lints only */
};

void kl_order_text(const struct kl_order_answered *answer, FILE *to);
ncclResult_t kl_order_json(const struct kl_order_answered *answer, FILE *to);

/** The range of an element of a block; NULL if there is none. */
const struct kl_order_range *kl_order_range_at(const struct kl_order *order, int block, int64_t element);

/** An expression. free() it; NULL when memory is short. */
char *kl_order_expression(const struct kl_order *order, int sum);

#endif
