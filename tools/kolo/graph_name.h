/* SPDX-License-Identifier: Apache-2.0 */
/** graph_name.h - kinds of graphs, as the command line names them. */
#ifndef KOLO_TOOL_GRAPH_NAME_H
#define KOLO_TOOL_GRAPH_NAME_H

/** Bits (enum kl_graph_id) of the graphs of a name; all of them for NULL, 0 for an unknown name. */
unsigned kl_graphs_named(const char *name);
#define KL_GRAPHS_NAMES "ring, tree, collnet or nvls"

#endif
