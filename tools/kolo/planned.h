/* SPDX-License-Identifier: Apache-2.0 */
/**
 * planned.h - an offline cluster with its graphs, rings, trees and tuning, as the settings of the environment have them.
 *
 * Errors: reported with KL_FAIL; the command prints kl_error_text().
 */
#ifndef KOLO_TOOL_PLANNED_H
#define KOLO_TOOL_PLANNED_H

#include "comm/config.h"
#include "graph/plan.h"
#include "tools/kolo/offline.h"

struct kl_planned {
    struct kl_comm_config comm;
    struct kl_graph_config config;
    struct kl_xml *graph_file; /* NCCL_GRAPH_FILE, NULL without */
    struct kl_plan *plan;
};

/** Plan for a cluster, which must outlive the result. Free with kl_planned_fini, also after a failure. */
ncclResult_t kl_planned_init(const struct kl_offline *cluster, struct kl_planned *planned);
void kl_planned_fini(struct kl_planned *planned);

/** Bits of the graphs that a name on the command line means; all of them without a name, 0 for a name that means none. */
unsigned kl_graphs_named(const char *name);
#define KL_GRAPHS_NAMES "ring, tree, collnet or nvls"

#endif
