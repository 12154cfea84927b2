/* SPDX-License-Identifier: Apache-2.0 */
/**
 * inbox.h - received frames of a peer, in order, until they are taken. All under the bootstrap's lock.
 */
#ifndef KL_BOOTSTRAP_INBOX_H
#define KL_BOOTSTRAP_INBOX_H

#include "bootstrap/state.h"

/** Bytes in the inbox beyond which only awaited connections are read. */
#define KL_INBOX_BYTES (64u << 20)

/** Put a frame into a peer's inbox, and wake a thread that waits for one from it. */
void kl_inbox_put(struct kl_contact *peer, struct kl_frame *frame);

/** A message of this rank to itself. */
ncclResult_t kl_inbox_put_own(struct kl_bootstrap *b, const struct kl_frame_head *head, const void *data);

/**
 * If a frame of that type and tag is here, take the oldest out, copy it to `data` and free it. Another length than
 * asked for is ncclInternalError; the frame is taken out then, too. A peer that has left without sending it is
 * ncclRemoteError.
 */
ncclResult_t kl_inbox_take(struct kl_contact *peer, const struct kl_frame_head *head, void *data, bool *here);

/** Free all frames that have not been taken. */
void kl_inbox_fini(struct kl_contact *peer);

#endif
