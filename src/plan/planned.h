/* SPDX-License-Identifier: Apache-2.0 */
/**
 * planned.h - a cluster with its graphs, rings, trees and tuning, with the settings in force.
 *
 * Errors:  reported with KL_FAIL.
 */
#ifndef KL_PLAN_PLANNED_H
#define KL_PLAN_PLANNED_H

#include "plan/cluster.h"
#include "plan/plan.h"

struct kl_planned {
    struct kl_graph_config config;
    struct kl_xml *graph_file; /* NCCL_GRAPH_FILE, NULL without */
    struct kl_plan *plan;
};

/** Plan for a cluster, which must outlive the result. Free with kl_planned_fini, also after a failure. */
ncclResult_t kl_planned_init(const struct kl_cluster *cluster, struct kl_planned *planned);
void kl_planned_fini(struct kl_planned *planned);

/** The request of the plan, to be changed and planned again. */
struct kl_plan_request kl_planned_request(const struct kl_cluster *cluster, const struct kl_planned *planned);

#endif
