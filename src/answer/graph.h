/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.h - the plan for a cluster: graphs, rings, trees, channels and tuning.
 *
 * Errors: as plan_json.h.
 */
#ifndef KL_ANSWER_GRAPH_H
#define KL_ANSWER_GRAPH_H

#include "answer/opened.h"
#include "answer/plan_json.h"

/** Plan for an opened cluster, and view the graphs of these bits (graph_name.h). The cluster must outlive the view. */
ncclResult_t kl_graph_answer_make(struct kl_opened *opened, unsigned graphs, struct kl_plan_view *view);

/** An array of sentences about suspicious facts of the machine and of its plan. NULL when memory is short. */
json_t *kl_graph_warnings(const struct kl_plan_view *view);

ncclResult_t kl_graph_json(const struct kl_plan_view *view, FILE *to);

#endif
