/* SPDX-License-Identifier: Apache-2.0 */
/** plan_json.h - a plan as the JSON object of `kolo graph --json`; its keys are those of the command's manual. */
#ifndef KL_ANSWER_PLAN_JSON_H
#define KL_ANSWER_PLAN_JSON_H

#include "plan/cluster.h"
#include "plan/plan.h"

#include <jansson.h>
#include <stdio.h>

struct kl_plan_view {
    const struct kl_cluster *cluster;
    const struct kl_plan *plan;
    unsigned graphs;  /* bit enum kl_graph_id: those to show */
    double search_ms; /* wall time of the searches on one host */
    json_t *tuner;    /* the choices of a tuner, added to the JSON; NULL: none. The caller's */
};

/**
 * Written piece by piece, so that a cluster of any size needs little more memory than its plan. `warnings` (an array) is
 * let go of. ncclSystemError when memory is short, and errors of questions that the topology can't answer.
 */
ncclResult_t kl_plan_json(const struct kl_plan_view *view, json_t *warnings, FILE *to);

#endif
