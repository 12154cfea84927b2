/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph_wire.h - graphs as bytes, for the transfer from the rank that searched a machine to the other processes on it.
 *
 *     header: magic, version, how many | for each graph: its numbers, then its channels' orders, then their NETs
 *
 * Raw bytes between processes of one job, which run the same library on the same kind of machine. The received bytes
 * are checked against the machine: no index in them leads outside of an array.
 *
 * Errors:  ncclInternalError for bytes that are no graphs of this machine.
 * Threads: pure.
 */
#ifndef KL_COMM_GRAPH_WIRE_H
#define KL_COMM_GRAPH_WIRE_H

#include "graph/connect.h"

/** Fresh memory at `*bytes` (free() it). */
ncclResult_t kl_graphs_pack(const struct kl_graphs *graphs, void **bytes, size_t *size);

/** Unpack the graphs of a machine that kl_graphs_pack packed; free with kl_graphs_fini. They have no `why`. */
ncclResult_t kl_graphs_unpack(const void *bytes, size_t size, const struct kl_topo *topo, struct kl_graphs *graphs);

#endif
