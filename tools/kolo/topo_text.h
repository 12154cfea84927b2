/* SPDX-License-Identifier: Apache-2.0 */
/** topo_text.h - a topology as people read it, and as a picture. */
#ifndef KOLO_TOOL_TOPO_TEXT_H
#define KOLO_TOOL_TOPO_TEXT_H

#include "plan/cluster.h"

#include <stdio.h>

/** A headline, the tree of each CPU, tables GPU by GPU and GPU by NIC, and which NIC each GPU uses, how. */
void kl_topo_text(const struct kl_topo *t, const struct kl_cluster *cluster, FILE *to);

/** Graphviz: nodes, and a line for each pair of links that belong together. */
void kl_topo_dot(const struct kl_topo *t, const char *name, FILE *to);

/** The path from one node to another, link by link, and its consequences. Both are GPUs, NETs, CPUs or the NVSwitch. */
void kl_topo_explain_path(const struct kl_topo *t, int from, int to_node, FILE *to);

#endif
