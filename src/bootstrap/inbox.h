/* SPDX-License-Identifier: Apache-2.0 */
/**
 * inbox.h - frames that have come from a peer and wait for somebody to ask for them, in order. All under the bootstrap's lock.
 */
#ifndef KL_BOOTSTRAP_INBOX_H
#define KL_BOOTSTRAP_INBOX_H

#include "bootstrap/state.h"

/** Bytes in the inbox beyond which connections are no longer read, but for those that somebody waits for. */
#define KL_INBOX_BYTES (64u << 20)

/** Put a frame into a peer's inbox, and wake who waits for one from it. */
void kl_inbox_put(struct kl_contact *peer, struct kl_frame *frame);

/** A message of this rank to itself. */
ncclResult_t kl_inbox_put_own(struct kl_bootstrap *b, const struct kl_frame_head *head, const void *data);

/**
 * Is a frame of that type and tag here? Then the oldest is taken out, copied to `data` and freed. Another length than asked for
 * is ncclInternalError; it is taken out then, too. A peer that has left without it is ncclRemoteError.
 */
ncclResult_t kl_inbox_take(struct kl_contact *peer, const struct kl_frame_head *head, void *data, bool *here);

/** Free what nobody has asked for. */
void kl_inbox_fini(struct kl_contact *peer);

#endif
