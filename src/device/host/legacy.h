/* SPDX-License-Identifier: Apache-2.0 */
/**
 * legacy.h - the order between a device's default stream and its blocking ones (KOLO_STREAM_BLOCKING), as CUDA's legacy stream has it.
 *
 * What the default stream is given waits for all that blocking streams of its device were given before, and what a blocking stream is
 * given waits for all that the default stream was. Each is a wait for a ticket, queued when it is new. Streams that take part have
 * KL_STREAM_ORDERED among their flags, the default stream from the first blocking one on: programs without such pay nothing.
 *
 * Threads:      any.
 * Memory order: a tail is read by a read-modify-write before the own stream's tail moves: of two threads that give work to both kinds of
 *               streams at the same time, at most one sees the other's, so streams never wait for each other in a circle.
 */
#ifndef KL_DEVICE_HOST_LEGACY_H
#define KL_DEVICE_HOST_LEGACY_H

#include "device/host/stream.h"

ncclResult_t kl_legacy_put_in_order(struct kl_stream *stream);

/** Before work is queued on `stream`. ncclInvalidUsage: it would have to wait for a stream that captures. */
static inline ncclResult_t kl_legacy_order(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->flags) & KL_STREAM_ORDERED ? kl_legacy_put_in_order(stream) : ncclSuccess;
}

#endif
