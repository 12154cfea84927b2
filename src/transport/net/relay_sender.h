/* SPDX-License-Identifier: Apache-2.0 */
/**
 * relay_sender.h - the sender's half of relay.h: a connector that lets another rank of this host send its data.
 *
 * Threads: as connectors: one at a time.
 */
#ifndef KL_TRANSPORT_NET_RELAY_SENDER_H
#define KL_TRANSPORT_NET_RELAY_SENDER_H

#include "transport/connector.h"

/** As a transport's connect; `local` is the transport to the relay's memory. */
ncclResult_t kl_relay_sender_connect(struct kl_connector *c, const struct kl_transport *local,
                                     const struct kl_connect_info *info, uint64_t deadline);

/** Wake the relay for published steps. MOVED: something moved. */
enum kl_progress kl_relay_sender_progress(struct kl_connector *c);

/** No more steps follow; published ones are still sent. In any state. */
void kl_relay_sender_free(struct kl_connector *c);

#endif
