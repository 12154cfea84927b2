/* SPDX-License-Identifier: Apache-2.0 */
/**
 * outbox.h - frames to be sent to a peer, in order: queued, sealed and written to a socket as far as it takes them, or
 * dropped.
 *
 * Threads: one at a time.
 */
#ifndef KL_BOOTSTRAP_OUTBOX_H
#define KL_BOOTSTRAP_OUTBOX_H

#include "bootstrap/frame.h"

struct kl_queued_frame;

/** Zeroed: empty. The seal is set before the first flush. */
struct kl_outbox {
    struct kl_seal seal;
    struct kl_queued_frame *first, *last;
};

enum kl_queued_state { KL_QUEUED, KL_QUEUED_SENT, KL_QUEUED_DROPPED };

/** Queue a copy of a frame. False: no memory. */
bool kl_outbox_add(struct kl_outbox *outbox, const struct kl_frame_head *head, const void *body);

/** Queue a frame with a `body` of malloc, which is given away, also on failure. False: no memory. */
bool kl_outbox_add_owned(struct kl_outbox *outbox, const struct kl_frame_head *head, void *body);

/**
 * Queue a frame whose `body` stays the sender's; the sender waits until it has been written and then takes the frame
 * back. NULL: no memory.
 */
struct kl_queued_frame *kl_outbox_add_borrowed(struct kl_outbox *outbox, const struct kl_frame_head *head,
                                               const void *body);

/** State of a borrowed frame. */
enum kl_queued_state kl_queued_state(const struct kl_queued_frame *frame);

/**
 * The sender no longer waits. A queued frame continues as a copy; a frame that was begun must be completed, or no other
 * can follow. False: no memory for the copy; all frames up to this one are dropped, and the connection is unusable.
 */
bool kl_outbox_reclaim(struct kl_outbox *outbox, struct kl_queued_frame *frame);

/**
 * Write as much as the socket takes. Returns 0 when all is written, or errno: EAGAIN, or a lasting error. `*gone`: borrowed
 * frames have been written.
 */
int kl_outbox_flush(struct kl_outbox *outbox, int fd, bool *gone);

/** Are there more than `n` frames in it? */
bool kl_outbox_holds_more(const struct kl_outbox *outbox, size_t n);

/** Drop everything. */
void kl_outbox_drop(struct kl_outbox *outbox);

/** Drop everything, and wipe the key. */
void kl_outbox_fini(struct kl_outbox *outbox);

#endif
