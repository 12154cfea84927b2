/* SPDX-License-Identifier: Apache-2.0 */
/** pair_nics.h - the NICs of a pair that the network joins, channel by channel. Private to the pair*.c. */
#ifndef KL_PLAN_PAIR_NICS_H
#define KL_PLAN_PAIR_NICS_H

#include "plan/pair.h"
#include "plan/plan.h"

/** Fill the NICs of a route between GPUs, the ways to the first of them, and its bandwidth. */
ncclResult_t kl_pair_nics_find(const struct kl_plan *plan, const struct kl_xml *document, struct kl_pair_route *route);

#endif
