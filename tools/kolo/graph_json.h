/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph_json.h - what `kolo graph` prints of a plan: as JSON, as a graph file, and for people.
 *
 * Errors: ncclSystemError when memory is short or the stream cannot be written; ncclInternalError as the questions asked.
 */
#ifndef KOLO_TOOL_GRAPH_JSON_H
#define KOLO_TOOL_GRAPH_JSON_H

#include "graph/plan.h"
#include "tools/kolo/offline.h"

#include <stdio.h>

/** Written piece by piece, so that a cluster of any size needs no more memory than its plan. `ms`: wall time of planning. */
ncclResult_t graph_json_write(const struct kl_offline *cluster, const struct kl_plan *plan, double ms, FILE *to);

/** The graphs of rank 0 as a file for NCCL_GRAPH_FILE; `only`: ring, tree, collnet or nvls, NULL for all. */
ncclResult_t graph_xml_print(const struct kl_plan *plan, const char *only, FILE *to);

/** For people: each graph, the rings and trees over all ranks, and why the search ended where it did. */
ncclResult_t graph_text_print(const struct kl_offline *cluster, const struct kl_plan *plan, const char *only, FILE *to);

#endif
