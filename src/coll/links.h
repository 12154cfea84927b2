/* SPDX-License-Identifier: Apache-2.0 */
/** links.h - the connectors of an algorithm's edges, and the operations on them that all algorithms share. */
#ifndef KL_COLL_LINKS_H
#define KL_COLL_LINKS_H

#include "coll/algorithm.h"

#include <string.h>

/** Edge `number` of a channel leads to, or comes from, `peer`; nothing for a negative one. */
ncclResult_t kl_links_recv(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_links_send(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);

/** The same on the way to a head (KL_EDGE_SCATTER), beside the edge from it. */
ncclResult_t kl_links_recv_share(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_links_send_share(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);

/** A network that reduces, in which the heads of all nodes meet. */
struct kl_meeting {
    enum kl_edge_use use;
    int channel;
    int edge; /* the network's number among the head's edges, both ways */

    /** The head of a node: kl_connect_chain_head and its like, called with `of`: a channel, or the number of a head. */
    int (*head)(const struct kl_connect *graph, int of, int node);
    int of;
};

/** This rank is the head of its node: request its link into the network. */
ncclResult_t kl_links_meet(struct kl_links *links, const struct kl_connect *graph, struct kl_connections *cs,
                           const struct kl_meeting *meeting, struct kl_collnet_link **link);

/** Request memory of `bytes` that all ranks of the communicator map. `ranks` has room for all of them, and lives as
 * long as `cs`. */
ncclResult_t kl_links_share_all(struct kl_links *links, const struct kl_connect *graph, struct kl_connections *cs,
                                int32_t *ranks, size_t bytes);

/** Are all connectors ready? Caches a yes. */
bool kl_links_ready(struct kl_links *links);

/** Move the data of connectors that this side has to move (links->moved_here): received and sent ones. True: some
 * moved. *rc is set on failure. */
bool kl_links_receive(struct kl_links *links, ncclResult_t *rc);
bool kl_links_send_on(struct kl_links *links, ncclResult_t *rc);

/** For a thread that is about to sleep: does a descriptor wake it when this connector's data arrive, or leave? */
bool kl_links_sleep_on(struct kl_connector *connector);

/** Send the next step, for which there is room. `lasts`: the value stays in place until kl_links_drained. */
static inline void kl_links_pass_on(struct kl_fifo_tx *tx, const void *value, size_t bytes, bool lasts)
{
    if (lasts && bytes >= tx->lends_from) {
        kl_fifo_publish_direct(tx, value, bytes, false);
        return;
    }
    void *slot = kl_fifo_reserve(tx, bytes);
    if (slot != value) kl_copy_out(&tx->out, slot, value, bytes);
    kl_fifo_publish(tx, bytes, false);
}

/** Set the signature of the steps that are sent from here on. */
static inline void kl_links_sign(struct kl_links *links, uint64_t signature)
{
    for (int i = 0; i < links->nsend; i++)
        if (links->send[i]) links->send[i]->tx.signature = signature;
}

/** Has all lent memory been read? */
bool kl_links_drained(const struct kl_links *links);

/** A rank without room on an edge of `set`, or one that still reads lent memory; with `gone`, only one that has left.
 * -1: none. */
int kl_links_waits_for_room(const struct kl_links *links, uint32_t set, bool gone);

/** Free the resources of the links: not the connectors. */
void kl_links_fini(struct kl_links *links);

#endif
