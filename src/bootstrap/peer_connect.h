/* SPDX-License-Identifier: Apache-2.0 */
/** peer_connect.h - open connections between ranks, and resolve simultaneous calls in both directions. */
#ifndef KL_BOOTSTRAP_PEER_CONNECT_H
#define KL_BOOTSTRAP_PEER_CONNECT_H

#include "bootstrap/acceptor.h"
#include "bootstrap/state.h"

/** Begin to connect to a peer with a known address. Under lock; does not block. */
ncclResult_t kl_peer_connect_begin(struct kl_contact *peer);

/** Make sure that the peer is UP. Under lock, released while it waits. */
ncclResult_t kl_peer_connect(struct kl_contact *peer, uint64_t deadline);

/** The acceptor's callback for a call from a peer. */
void kl_peer_connect_on_call(void *ctx, struct kl_incoming *incoming);

/**
 * First step of leaving: lets calls in progress finish, so that peers that are called, or were told to call this rank,
 * do not take it for dead, and flushes queued frames. Without lock.
 */
void kl_peer_connect_finish(struct kl_bootstrap *b, uint64_t deadline);

/** Second step: cancel all calls. Without lock. */
void kl_peer_connect_cancel_all(struct kl_bootstrap *b);

#endif
