/* SPDX-License-Identifier: Apache-2.0 */
/** graph_json.h - a plan as the JSON object of `kolo graph --json`; the keys are described in the manual of the command. */
#ifndef KOLO_TOOL_GRAPH_JSON_H
#define KOLO_TOOL_GRAPH_JSON_H

#include "graph/plan.h"

#include <stdio.h>

struct graph_json_head {
    const char *topology; /* file name, or "this machine" */
    int hosts;            /* as asked for: several hosts in one NVLink domain count */
    int gpus_per_host;
    double search_ms; /* wall time */
};

/** Written piece by piece, so that a cluster of any size needs no more memory than its plan. 0, or -1 when memory is short. */
int graph_json_write(const struct graph_json_head *head, const struct kl_plan *plan, FILE *to);

#endif
