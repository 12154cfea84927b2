/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graphs.h - all graphs that a communicator needs of one machine.
 *
 * Source: the graph specification, 7.
 */
#ifndef KL_GRAPH_GRAPHS_H
#define KL_GRAPH_GRAPHS_H

#include "graph/connect.h"

struct kl_graphs_request {
    bool collnet;              /* use a network that reduces */
    bool nvls;                 /* an NVSwitch that reduces is there */
    const struct kl_xml *file; /* graph file to take graphs from, NULL for none */
};

/** Compute ring, tree, and the requested further graphs, in the reference's order; free with kl_graphs_fini. */
ncclResult_t kl_graphs_compute(const struct kl_topo *topo, const struct kl_graphs_request *request,
                               struct kl_graphs *graphs);

/** Free all graphs; NULL members are fine. */
void kl_graphs_fini(struct kl_graphs *graphs);

#endif
