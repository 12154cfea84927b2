/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handover.h - the sender's half of relay.h: a connector whose data another rank of this host sends.
 *
 * Threads: as connectors: one at a time.
 */
#ifndef KL_TRANSPORT_NET_HANDOVER_H
#define KL_TRANSPORT_NET_HANDOVER_H

#include "transport/connector.h"

/** As a transport's connect; `local` is the way to the other rank's memory. */
ncclResult_t kl_handover_connect(struct kl_connector *c, const struct kl_transport *local, const struct kl_card *card,
                                 uint64_t deadline);

/** See to it that what was published gets on. MOVED: something did. */
enum kl_progress kl_handover_progress(struct kl_connector *c);

/** Nothing more comes; what was published is still sent. In any state. */
void kl_handover_free(struct kl_connector *c);

#endif
