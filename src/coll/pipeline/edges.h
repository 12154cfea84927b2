/* SPDX-License-Identifier: Apache-2.0 */
/** edges.h - the connectors of an algorithm's edges, and the operations on them that all algorithms share. */
#ifndef KL_COLL_PIPELINE_EDGES_H
#define KL_COLL_PIPELINE_EDGES_H

#include "coll/pipeline/algorithm.h"

#include <string.h>

/** Request the edges of a channel to the neighbours that the algorithm's `find` names: in its `link`. */
ncclResult_t kl_edges_link(const struct kl_algorithm *a, const struct kl_connect *graph, struct kl_connections *cs,
                           int channel, struct kl_edges *edges);

/** Edge `number` of a channel leads to, or comes from, `peer`; nothing for a negative one. */
ncclResult_t kl_edges_recv(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_edges_send(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer);

/** The same on the way to a head (KL_EDGE_SCATTER), beside the edge from it. */
ncclResult_t kl_edges_recv_scatter(struct kl_edges *edges, struct kl_connections *cs, int channel, int number,
                                   int peer);
ncclResult_t kl_edges_send_scatter(struct kl_edges *edges, struct kl_connections *cs, int channel, int number,
                                   int peer);

/** A network that reduces, in which the heads of all nodes meet. */
struct kl_network_edge {
    enum kl_edge_use use;
    int channel;
    int edge; /* the network's number among the head's edges, both ways */

    /** The head of a node: kl_connect_chain_head and its like, called with `of`: a channel, or the number of a head. */
    int (*head)(const struct kl_connect *graph, int of, int node);
    int of;
};

/** This rank is the head of its node: request its link into the network. */
ncclResult_t kl_edges_join_network(struct kl_edges *edges, const struct kl_connect *graph, struct kl_connections *cs,
                                   const struct kl_network_edge *meeting, struct kl_collnet_link **link);

/** Request memory of `bytes` that all ranks of the communicator map. `ranks` has room for all of them, and lives as
 * long as `cs`. */
ncclResult_t kl_edges_get_arena(struct kl_edges *edges, const struct kl_connect *graph, struct kl_connections *cs,
                                int32_t *ranks, size_t bytes);

/** Are all connectors ready? Caches a yes. */
bool kl_edges_ready(struct kl_edges *edges);

/** Move the data of connectors that this side has to move (edges->moved_here): received and sent ones. True: some
 * moved. *rc is set on failure. */
bool kl_edges_progress_receive(struct kl_edges *edges, ncclResult_t *rc);
bool kl_edges_progress_send(struct kl_edges *edges, ncclResult_t *rc);

/** For a thread that is about to sleep: does a descriptor wake it when this connector's data arrive, or leave? */
bool kl_edges_sleep_on(struct kl_connector *connector);

/** Send the next step, for which there is room. `lasts`: the value stays in place until kl_edges_drained. */
static inline void kl_edges_send_step(struct kl_fifo_tx *tx, const void *value, size_t bytes, bool lasts)
{
    if (lasts && bytes >= tx->zcopy_from) {
        kl_fifo_publish_direct(tx, value, bytes, false);
        return;
    }
    void *slot = kl_fifo_reserve(tx, bytes);
    if (slot != value) kl_copy_out(&tx->out, slot, value, bytes);
    kl_fifo_publish(tx, bytes, false);
}

/** Set the signature of the steps that are sent from here on. */
static inline void kl_edges_set_signature(struct kl_edges *edges, uint64_t signature)
{
    for (int i = 0; i < edges->nsend; i++)
        if (edges->send[i]) edges->send[i]->tx.signature = signature;
}

/** Have all zero-copy data been read? */
bool kl_edges_drained(const struct kl_edges *edges);

/** A rank without room on an edge of `set`, or one that still reads zero-copy memory; with `gone`, only one that has left.
 * -1: none. */
int kl_edges_waits_for_room(const struct kl_edges *edges, uint32_t set, bool gone);

/** Free the resources of the edges: not the connectors. */
void kl_edges_fini(struct kl_edges *edges);

#endif
