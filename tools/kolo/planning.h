/* SPDX-License-Identifier: Apache-2.0 */
/**
 * planning.h - a cluster and the plan for it: what the command line asked for, with the settings of the environment.
 */
#ifndef KOLO_TOOL_PLANNING_H
#define KOLO_TOOL_PLANNING_H

#include "comm/config.h"
#include "graph/plan.h"
#include "tools/kolo/offline.h"

/** Everything a plan is made of; the plan points into it, so it stays where it is. */
struct kl_planning {
    struct kl_offline cluster;
    struct kl_comm_config comm;
    struct kl_graph_config graph;
    struct kl_xml *graph_file;
    struct kl_plan *plan;
    double ms; /* wall time of planning */
};

/** Open the cluster and plan it. Free in every case. */
ncclResult_t kl_planning_make(const struct kl_offline_args *args, struct kl_planning *planning);
void kl_planning_free(struct kl_planning *planning);

#endif
