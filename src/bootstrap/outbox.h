/* SPDX-License-Identifier: Apache-2.0 */
/**
 * outbox.h - frames on their way to a peer, in order: queued, sealed and handed to a socket as far as it takes them, or dropped.
 *
 * Threads: one at a time.
 */
#ifndef KL_BOOTSTRAP_OUTBOX_H
#define KL_BOOTSTRAP_OUTBOX_H

#include "bootstrap/frame.h"

struct kl_queued_frame;

/** Zeroed: empty. The seal is there before the first flush. */
struct kl_outbox {
    struct kl_seal seal;
    struct kl_queued_frame *first, *last;
};

enum kl_queued_state { KL_QUEUED, KL_QUEUED_SENT, KL_QUEUED_DROPPED };

/** Queue a copy of a frame. False: no memory. */
bool kl_outbox_add(struct kl_outbox *outbox, const struct kl_frame_head *head, const void *body);

/** Queue a frame whose `body` stays the sender's, who waits until it has gone and then takes it back. NULL: no memory. */
struct kl_queued_frame *kl_outbox_lend(struct kl_outbox *outbox, const struct kl_frame_head *head, const void *body);

/** What became of a lent frame. */
enum kl_queued_state kl_queued_state(const struct kl_queued_frame *frame);

/**
 * The sender no longer waits. A frame still queued goes on by itself, as a copy; begun, it must be completed, or nothing can
 * follow it. False: there is no memory for that; all up to this frame is dropped, and the connection is of no further use.
 */
bool kl_outbox_take_back(struct kl_outbox *outbox, struct kl_queued_frame *frame);

/**
 * Hand over what the socket takes. 0 when nothing is left, or the errno of what is in the way: EAGAIN, or something that will
 * not pass. `*gone`: frames that somebody waits for have gone.
 */
int kl_outbox_flush(struct kl_outbox *outbox, int fd, bool *gone);

/** Are there more than `n` frames in it? */
bool kl_outbox_holds_more(const struct kl_outbox *outbox, size_t n);

/** Drop everything. */
void kl_outbox_drop(struct kl_outbox *outbox);

/** Drop everything, and forget the key. */
void kl_outbox_fini(struct kl_outbox *outbox);

#endif
