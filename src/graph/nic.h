/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nic.h - the NET of a rank's connections of a graph, and the rank of the proxy that serves it.
 *
 * Point-to-point traffic asks kl_topo_p2p_net instead.
 * Source: the graph specification, 8.11.
 */
#ifndef KL_GRAPH_NIC_H
#define KL_GRAPH_NIC_H

#include "graph/connect.h"

struct kl_graph_nic {
    int net;   /* index among NETs */
    int proxy; /* rank of the proxy that serves it */
};

/**
 * The graph that provides the NETs of the edge between `rank` and `peer`: ring, tree or NVLS. An edge of several graphs
 * belongs to the ring or the tree; an edge of an algorithm without a graph of its own to the tree.
 */
int kl_graph_of_edge(const struct kl_connect *connect, int channel, int rank, int peer, bool sends);

/**
 * The NET of a rank on a communicator's channel: the entry of the graph's channel for its first GPU, else the
 * exit. NVLS heads use the entries of their own channels in turn. Of the graph's channels those count that all ranks have:
 * `nchannels`, as in struct kl_connect. ncclInternalError when the graph names a NET that the topology does not have, or
 * the rank is no head.
 */
ncclResult_t kl_graph_nic(const struct kl_topo *topo, const struct kl_graph *graph, int nchannels, int channel,
                          int rank, struct kl_graph_nic *nic);

#endif
