/* SPDX-License-Identifier: Apache-2.0 */
/**
 * follow.h - work that waits until another stream has come somewhere: what events, the default stream and graphs put streams in
 * order with.
 *
 * It waits for a ticket, so it means what was queued before it was made, whatever becomes of the event or the stream later.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_HOST_FOLLOW_H
#define KL_DEVICE_HOST_FOLLOW_H

#include "device/host/stream.h"

/** What is queued on `stream` from now on runs after everything up to `ticket` (exclusive) of `other`. */
void kl_follow(struct kl_stream *stream, struct kl_stream *other, uint64_t ticket);

#endif
