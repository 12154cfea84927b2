/* SPDX-License-Identifier: Apache-2.0 */
/** send.h - messages out of a link: into slots of the peer, or, larger ones, where it requests them. */
#ifndef KL_NET_VERBS_SEND_H
#define KL_NET_VERBS_SEND_H

#include "net/verbs/link.h"

/** Move on: requests of the peer, messages that wait for a slot. */
void kl_verbs_send_work(struct kl_verbs_link *l);

/** The peer has requested data. */
void kl_verbs_send_requested(struct kl_verbs_link *l);

/** The peer has consumed messages; `imm`: immediate data with their number. */
void kl_verbs_send_credited(struct kl_verbs_link *l, uint32_t imm);

/** Send requests of a queue up to `number` are complete. */
void kl_verbs_send_completed(struct kl_verbs_link *l, int queue, uint64_t number);

/** Use the other direction of the link. False: no slot is free. */
bool kl_verbs_send_back(struct kl_verbs_link *l, uint32_t id);

/** One direction was closed, the other goes on: the sender's end is told to the peer. */
void kl_verbs_send_leave(struct kl_verbs_link *l, bool sender);

/** Tell the peer that messages were consumed, if it is time. */
void kl_verbs_send_credit(struct kl_verbs_link *l);

#endif
