/* SPDX-License-Identifier: Apache-2.0 */
/**
 * follow.h - work that waits until another stream has reached a ticket: the ordering of events, the default stream and
 * graphs.
 *
 * The ticket stands for work queued before it was drawn, independent of later uses of the event or stream.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_HOST_FOLLOW_H
#define KL_DEVICE_HOST_FOLLOW_H

#include "device/host/stream.h"

/** Work queued on `stream` from now on runs after all work up to `ticket` (exclusive) of `other`. */
void kl_follow(struct kl_stream *stream, struct kl_stream *other, uint64_t ticket);

#endif
