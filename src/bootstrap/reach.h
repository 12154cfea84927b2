/* SPDX-License-Identifier: Apache-2.0 */
/** reach.h - open connections between ranks, and resolve simultaneous calls in both directions. */
#ifndef KL_BOOTSTRAP_REACH_H
#define KL_BOOTSTRAP_REACH_H

#include "bootstrap/acceptor.h"
#include "bootstrap/state.h"

/** Begin to connect to a peer with a known address. Under lock; does not block. */
ncclResult_t kl_reach_begin(struct kl_contact *peer);

/** Make sure that the peer is UP. Under lock, released while it waits. */
ncclResult_t kl_reach(struct kl_contact *peer, uint64_t deadline);

/** The acceptor's callback for a call from a peer. */
void kl_reach_called(void *ctx, struct kl_incoming *incoming);

/**
 * First step of leaving: lets calls in progress finish, so that peers that are called, or were told to call this rank,
 * do not take it for dead, and flushes queued frames. Without lock.
 */
void kl_reach_finish(struct kl_bootstrap *b, uint64_t deadline);

/** Second step: cancel all calls. Without lock. */
void kl_reach_stop(struct kl_bootstrap *b);

#endif
