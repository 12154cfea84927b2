/* SPDX-License-Identifier: Apache-2.0 */
/** graph_name.h - kinds of graphs by name. */
#ifndef KL_ANSWER_GRAPH_NAME_H
#define KL_ANSWER_GRAPH_NAME_H

#include "include/nccl.h"

/** Bits (enum kl_graph_id) of the graphs that "ring", "tree", "collnet" or "nvls" means; all for NULL. ncclInvalidArgument for another name. */
ncclResult_t kl_graphs_read(const char *name, unsigned *graphs);

#endif
