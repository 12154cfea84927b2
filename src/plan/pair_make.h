/* SPDX-License-Identifier: Apache-2.0 */
/** pair_make.h - shared by the pair*.c. Private to them. */
#ifndef KL_PLAN_PAIR_MAKE_H
#define KL_PLAN_PAIR_MAKE_H

#include "plan/pair.h"
#include "plan/plan.h"

/** Find an end by its name (pair_ends.c). `whole`, `document`: host 0 untrimmed (kl_cluster_whole). */
ncclResult_t kl_pair_end_find(const struct kl_cluster *cluster, const struct kl_topo *whole,
                              const struct kl_xml *document, const char *word, struct kl_pair_end *end);

/** The topology of a GPU's rank (pair_path.c). */
const struct kl_topo *kl_pair_topo(const struct kl_plan *plan, const struct kl_pair_end *end);

/** Append the path between two nodes of a host to `route->segment`; ranks are increased by `shift` (pair_path.c). */
ncclResult_t kl_pair_path_add(struct kl_pair_route *route, const struct kl_topo *t, int from, int to, int shift);

/** Fill the NICs of a route between GPUs, the paths to the first of them, and its bandwidth (pair_nics.c). */
ncclResult_t kl_pair_nics_find(const struct kl_plan *plan, const struct kl_xml *document, struct kl_pair_route *route);

#endif
