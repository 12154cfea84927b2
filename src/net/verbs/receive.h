/* SPDX-License-Identifier: Apache-2.0 */
/** receive.h - messages into a link: matched with receives in their order; data of large ones are requested. */
#ifndef KL_NET_VERBS_RECEIVE_H
#define KL_NET_VERBS_RECEIVE_H

#include "net/verbs/link.h"

/** Move on: messages that arrived, requests for data. */
void kl_verbs_recv_work(struct kl_verbs_link *l);

/** A message has arrived; the data of request `number` (its lower bits) have. */
void kl_verbs_recv_message(struct kl_verbs_link *l);
void kl_verbs_recv_data(struct kl_verbs_link *l, uint32_t number);

#endif
