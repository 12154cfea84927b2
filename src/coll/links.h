/* SPDX-License-Identifier: Apache-2.0 */
/** links.h - asking for the connectors of an algorithm's edges: for the files of algorithms. */
#ifndef KL_COLL_LINKS_H
#define KL_COLL_LINKS_H

#include "coll/algorithm.h"

/** Edge `number` of a channel leads to, or comes from, `peer`; nothing for a negative one. */
ncclResult_t kl_links_recv(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_links_send(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);

/** The same on the way to a head (KL_EDGE_SCATTER), beside what comes from it. */
ncclResult_t kl_links_recv_share(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_links_send_share(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);

/** Edge `number`, both ways, has connectors of its own. */
void kl_links_set(struct kl_links *links, int number, struct kl_connector *recv, struct kl_connector *send);

/** Are all connectors ready? Remembers if so. */
bool kl_links_ready(struct kl_links *links);

/** Move the data of connectors that this side has to move (links->moved_here). *rc is set on failure, with DONE. */
enum kl_progress kl_links_progress(struct kl_links *links, ncclResult_t *rc);

/** Free what belongs to the links: not the connectors. */
void kl_links_fini(struct kl_links *links);

#endif
