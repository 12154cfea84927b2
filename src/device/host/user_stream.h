/* SPDX-License-Identifier: Apache-2.0 */
/**
 * user_stream.h - the program's view of streams: handles, default streams, per-thread streams, and waits.
 *
 * A wait or query of a default stream covers its own work and, if there are blocking streams, theirs, without queueing
 * any work on them, so that no other thread waits for it.
 *
 * Errors:   ncclInvalidUsage if the caller would wait for a capturing stream (capture.h).
 * Threads:  any; one thread at a time ends a given stream.
 */
#ifndef KL_DEVICE_HOST_USER_STREAM_H
#define KL_DEVICE_HOST_USER_STREAM_H

#include "device/host/stream.h"

/**
 * The stream of a user's handle: NULL and koloStreamLegacy are the default stream of `device`, koloStreamPerThread is
 * the calling thread's own stream of it; both are made at first use, and a thread's own streams are released when it
 * ends. An invalid handle is ncclInvalidArgument.
 */
ncclResult_t kl_user_stream_of(cudaStream_t handle, int device, struct kl_stream **stream);

/**
 * The handle of a stream: its address, and in the upper 16 bits the stream's number, so that the handle of a destroyed stream is refused also
 * when another stream has its memory (but for one in 65,536).
 */
static inline cudaStream_t kl_user_stream_handle(const struct kl_stream *stream)
{
    return (cudaStream_t)((uintptr_t)stream ^ (uintptr_t)kl_stream_number(stream) << 48);
}

/** Does the handle name another stream for each device? */
static inline bool kl_user_stream_is_devices(cudaStream_t handle)
{
    return (uintptr_t)handle <= (uintptr_t)koloStreamPerThread;
}

/** As kl_stream_destroy and kl_stream_release, for a stream that may capture. */
ncclResult_t kl_user_stream_destroy(struct kl_stream *stream);
void kl_user_stream_release(struct kl_stream *stream);

/** Wait for all work queued before this call. Returns its first failure. */
ncclResult_t kl_user_stream_synchronize(struct kl_stream *stream);

/** ncclInProgress, or the result of the work. */
ncclResult_t kl_user_stream_query(struct kl_stream *stream);

/** Wait for all work queued before this call on streams of the device. Returns the first failure. */
ncclResult_t kl_user_stream_synchronize_all(int device);

#endif
