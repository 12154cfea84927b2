/* SPDX-License-Identifier: Apache-2.0 */
/** order_rules.h - the rules by which a planned cluster cuts operations (order_cut.h). */
#ifndef KL_PLAN_ORDER_RULES_H
#define KL_PLAN_ORDER_RULES_H

#include "plan/order_cut.h"
#include "plan/planned.h"

/** ncclInvalidUsage for a buffer size or chunk size in the settings that is no size. */
ncclResult_t kl_order_rules_of(const struct kl_cluster *cluster, const struct kl_planned *planned,
                               struct kl_order_rules *rules);

#endif
