/* SPDX-License-Identifier: Apache-2.0 */
/** reach.h - opening connections between ranks: who calls whom, and which of two calls that cross survives. */
#ifndef KL_BOOTSTRAP_REACH_H
#define KL_BOOTSTRAP_REACH_H

#include "bootstrap/acceptor.h"
#include "bootstrap/state.h"

/** Begin to call a peer that we are not connected with, and know the address of. Under lock; waits for nothing. */
ncclResult_t kl_reach_begin(struct kl_contact *peer);

/** Make sure that the peer is UP. Under lock, released while it waits. */
ncclResult_t kl_reach(struct kl_contact *peer, uint64_t deadline);

/** The acceptor's callback: a peer calls. */
void kl_reach_called(void *ctx, struct kl_incoming *incoming);

/**
 * Before leaving: calls that have begun come to their end, so that who is called or was told to call us does not think that we
 * died, and what is queued goes out. Without lock.
 */
void kl_reach_finish(struct kl_bootstrap *b, uint64_t deadline);

/** Then: no call is in progress any more. Without lock. */
void kl_reach_stop(struct kl_bootstrap *b);

#endif
