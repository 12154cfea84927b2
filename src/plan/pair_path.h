/* SPDX-License-Identifier: Apache-2.0 */
/** pair_path.h - the way between two nodes of one host, link by link. Private to the pair*.c. */
#ifndef KL_PLAN_PAIR_PATH_H
#define KL_PLAN_PAIR_PATH_H

#include "plan/pair.h"
#include "plan/plan.h"

/** Append it to `route->leg`; ranks are increased by `shift`. */
ncclResult_t kl_pair_path_add(struct kl_pair_route *route, const struct kl_topo *t, int from, int to, int shift);

/** The topology that a GPU's rank works with. */
const struct kl_topo *kl_pair_topo(const struct kl_plan *plan, const struct kl_pair_end *end);

#endif
