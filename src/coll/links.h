/* SPDX-License-Identifier: Apache-2.0 */
/** links.h - asking for the connectors of an algorithm's edges: for the files of algorithms. */
#ifndef KL_COLL_LINKS_H
#define KL_COLL_LINKS_H

#include "coll/algorithm.h"

/** Edge `number` of a channel leads to, or comes from, `peer`; nothing for a negative one. */
ncclResult_t kl_links_recv(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);
ncclResult_t kl_links_send(struct kl_links *links, struct kl_connections *cs, int channel, int number, int peer);

/** Are all connectors ready? Remembers if so. */
bool kl_links_ready(struct kl_links *links);

/** Move the data of connectors that this side has to move (links->moved_here): what comes, what leaves. True: something moved.
 * *rc is set on failure. */
bool kl_links_receive(struct kl_links *links, ncclResult_t *rc);
bool kl_links_send_on(struct kl_links *links, ncclResult_t *rc);

/** For a thread that is about to sleep: does this connector's data come, or leave, with a descriptor that wakes it? */
bool kl_links_sleep_on(struct kl_connector *connector);

/** Free what belongs to the links: not the connectors. */
void kl_links_fini(struct kl_links *links);

#endif
