/* SPDX-License-Identifier: Apache-2.0 */
/**
 * link.h - an authenticated connection with a peer: frames in and out, on the event loop.
 *
 * Frames for the bootstrap's user go to the inbox; notices, and the loss of the connection, to `on_bad_news`.
 */
#ifndef KL_BOOTSTRAP_LINK_H
#define KL_BOOTSTRAP_LINK_H

#include "bootstrap/handshake.h"
#include "bootstrap/state.h"

/* ---- under lock ---- */

/** Use a connection as the link to the peer; queued frames go out. Takes over the socket in every case. */
ncclResult_t kl_link_begin(struct kl_contact *peer, const struct kl_connection *connection);

/**
 * Queue a frame, without waiting: `body` is copied. It goes out when the peer is UP, and is dropped when the link ends,
 * which the reader notices. Silent; fails only for lack of memory.
 */
bool kl_link_post(struct kl_contact *peer, const struct kl_frame_head *head, const void *body);

/** The same; `body`, of malloc, is given away, also on failure. */
bool kl_link_post_owned(struct kl_contact *peer, const struct kl_frame_head *head, void *body);

/** Send a frame to a peer that is UP, and wait until the kernel has all of it. */
ncclResult_t kl_link_send(struct kl_contact *peer, const struct kl_frame_head *head, const void *body,
                          uint64_t deadline);

/** Are there queued frames that may still go out? */
bool kl_link_flushing(const struct kl_contact *peer);

/** Resume reading from this peer if the inbox was full; kl_link_resume_all: from all, if there is room again. */
void kl_link_resume(struct kl_contact *peer);
void kl_link_resume_all(struct kl_bootstrap *b);

/** The error for sending to a peer that is no longer UP: this rank's failure, or that the peer has left. */
ncclResult_t kl_link_ended(struct kl_contact *peer);

/* ---- leaving; without lock ---- */

/** First step, for all peers: no callback of this one runs any more. */
void kl_link_stop(struct kl_contact *peer);

/** Second step, after the first for all peers: say goodbye if it is UP, close, and free queued frames. */
void kl_link_fini(struct kl_contact *peer);

/** The connection with `peer` is unusable, for the reason `how`: treat it as lost. On the event loop, without lock. */
void kl_link_lose(struct kl_contact *peer, const char *how);

#endif
