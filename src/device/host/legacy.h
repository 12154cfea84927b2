/* SPDX-License-Identifier: Apache-2.0 */
/**
 * legacy.h - the order between a device's default stream and its blocking ones (KOLO_STREAM_BLOCKING), as CUDA's legacy
 * stream has it.
 *
 * Work of the default stream waits for all work queued before on blocking streams of its device, and work of a blocking
 * stream for all work queued before on the default stream. Each is a wait for a ticket, queued when the ticket is new.
 * Participating streams have the flag KL_STREAM_ORDERED, the default stream from the first blocking one on: other
 * programs pay nothing.
 *
 * Threads:      any.
 * Memory order: a tail is read by a read-modify-write before the own stream's tail moves: of two threads that push to
 *               both kinds of streams at the same time, at most one sees the other's work, so streams never wait for
 *               each other in a circle.
 */
#ifndef KL_DEVICE_HOST_LEGACY_H
#define KL_DEVICE_HOST_LEGACY_H

#include "device/host/stream.h"

ncclResult_t kl_legacy_put_in_order(struct kl_stream *stream);

/** Before work is queued on `stream`. ncclInvalidUsage: it would have to wait for a capturing stream. */
static inline ncclResult_t kl_legacy_order(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->flags) & KL_STREAM_ORDERED ? kl_legacy_put_in_order(stream) : ncclSuccess;
}

#endif
