/* SPDX-License-Identifier: Apache-2.0 */
/**
 * link.h - the connection with a peer, once it is authenticated: frames in and out, on the event loop.
 *
 * Frames for the bootstrap's user go to the inbox; notices, and the loss of the connection, to `on_bad_news`.
 */
#ifndef KL_BOOTSTRAP_LINK_H
#define KL_BOOTSTRAP_LINK_H

#include "bootstrap/handshake.h"
#include "bootstrap/state.h"

/* ---- under lock ---- */

/** That leads to the peer: it is the link from now on, and what is queued goes out. Takes over the socket in every case. */
ncclResult_t kl_link_begin(struct kl_contact *peer, const struct kl_connection *connection);

/**
 * Queue a frame, without waiting: `body` is copied. It goes out when the peer is UP, and is dropped when the link ends; its
 * reader notices that. Silent; only memory can be lacking.
 */
bool kl_link_post(struct kl_contact *peer, const struct kl_frame_head *head, const void *body);

/** Send a frame to a peer that is UP, and wait until the system has all of it. */
ncclResult_t kl_link_send(struct kl_contact *peer, const struct kl_frame_head *head, const void *body,
                          uint64_t deadline);

/** Is there something queued that may yet go out? */
bool kl_link_flushing(const struct kl_contact *peer);

/** Read this peer again if the inbox was full; `kl_link_resume_all` if there is room again. */
void kl_link_resume(struct kl_contact *peer);
void kl_link_resume_all(struct kl_bootstrap *b);

/** The error of sending to a peer that is no longer UP: our failure, or that it has left. */
ncclResult_t kl_link_ended(struct kl_contact *peer);

/* ---- leaving; without lock ---- */

/** First for all peers: no callback of this one runs any more. */
void kl_link_stop(struct kl_contact *peer);

/** Then, when nobody else is left: say goodbye if it is UP, close, and free what is queued. */
void kl_link_fini(struct kl_contact *peer);

/** The connection with `peer` is of no use any more, for the reason `how`: it is gone. On the event loop, without lock. */
void kl_link_lose(struct kl_contact *peer, const char *how);

#endif
