/* SPDX-License-Identifier: Apache-2.0 */
/**
 * transport.h - the table of transports, and the connectors that move data between two ranks.
 *
 * A connector is one direction between two ranks: the sender holds the sending half, the receiver the receiving half.
 * The first transport of the table that can connect the pair is taken. Both ranks ask with the same facts, so they choose
 * the same one; the connect info names it, so that a disagreement is an error and not a hang.
 *
 *     sender                                   receiver
 *                                              setup     owns the fifo; describes it: kl_connect_info
 *                      <--- info ---           (sent through the bootstrap)
 *     connect          maps the fifo
 *                      --- reply --->          settle    withdraws the resources for mapping
 *     kl_fifo_tx of the connector              kl_fifo_rx of the connector
 *     free                                     free
 *
 * Threads: one thread at a time uses a connector. A transport never calls into its owner.
 * A new transport is a folder and a line in the array of transport.c.
 * Source:  the runtime specification, 3.
 */
#ifndef KL_TRANSPORT_TRANSPORT_H
#define KL_TRANSPORT_TRANSPORT_H

#include "transport/connector.h"

/** "other_host"; and a phrase for people. */
const char *kl_refusal_name(enum kl_refusal refusal, const struct kl_pair_why *why);
const char *kl_refusal_text(enum kl_refusal refusal, const struct kl_pair_why *why, char text[KL_WHY_TEXT]);

/** Free the shared state; no connector may be left. */
void kl_common_fini(struct kl_common *common);

extern const struct kl_transport kl_transport_p2p, kl_transport_p2p_hosts, kl_transport_shm, kl_transport_net;

/** In order of preference; ends with NULL. */
extern const struct kl_transport *const kl_transports[];

/** The first that does not refuse a pair; NULL if all do. */
const struct kl_transport *kl_transport_first(const struct kl_pair_facts *facts);

/** The first transport that does not refuse; none: ncclSystemError with every refusal in the text. */
ncclResult_t kl_transport_choose(const struct kl_pair_facts *facts, const struct kl_transport **transport,
                                 uint32_t *index);

/** After a failed operation: the peer stops reading zero-copy memory. In any state, as the next two. */
void kl_connector_revoke(struct kl_connector *connector);

/** Before the process that made it frees it: tell the peer that no more steps will come. */
void kl_connector_leave(struct kl_connector *connector);

/** "to rank 3 by NET: 17 steps published, 15 of them gone". Call from the thread that uses it. Returns `text`. */
const char *kl_connector_state(const struct kl_connector *connector, char *text, size_t size);

/** Free the memory. */
void kl_connector_free(struct kl_connector *connector);

#endif
