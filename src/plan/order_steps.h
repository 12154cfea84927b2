/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_steps.h - a range's sum as its additions: which rank adds the partial sum of which other, and in which step.
 *
 * Units:   steps from 1 on: an addition comes one step behind the later of its operands.
 * Errors:  ncclSystemError when memory is short.
 * Threads: one at a time, as the sums.
 */
#ifndef KL_PLAN_ORDER_STEPS_H
#define KL_PLAN_ORDER_STEPS_H

#include "plan/order.h"

/** The chain or tree of a range, operands before their sums; none where a switch or the network makes the whole sum. */
ncclResult_t kl_order_steps_of(const struct kl_order *order, const struct kl_order_range *range,
                               struct kl_order_steps *steps);
void kl_order_steps_fini(struct kl_order_steps *steps);

/** Are the steps of nodes, whose switches made the sums that are added? */
bool kl_order_steps_of_nodes(const struct kl_order *order);

#endif
