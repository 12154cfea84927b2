/* SPDX-License-Identifier: Apache-2.0 */
/** order_print.h - the order of summation (answer/order.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_ORDER_PRINT_H
#define KOLO_TOOL_EXPLAIN_ORDER_PRINT_H

#include "answer/order.h"
#include "tools/kolo/explain/coll_print.h"

/** With the sums of some elements. */
void kl_order_text(const struct kl_order_answer *answer, const int64_t *element, int nelements, FILE *to);

#endif
