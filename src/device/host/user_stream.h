/* SPDX-License-Identifier: Apache-2.0 */
/**
 * user_stream.h - streams as programs have them: handles, default streams, those of threads, and who waits for them.
 *
 * Who waits for a default stream, or asks, waits for what it was given, and, where there are blocking streams, for what these were:
 * without giving any of them work, so that nobody else waits for that.
 *
 * Errors:   ncclInvalidUsage where something captures that the caller would wait for (capture.h).
 * Threads:  any; one thread at a time ends a given stream.
 */
#ifndef KL_DEVICE_HOST_USER_STREAM_H
#define KL_DEVICE_HOST_USER_STREAM_H

#include "device/host/stream.h"

/**
 * A user's handle to a stream: NULL and koloStreamLegacy are the default stream of `device`, koloStreamPerThread is the calling thread's own
 * stream of it; both are made at first use, and a thread's own streams are released when it ends. What is no stream is ncclInvalidArgument.
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

/** Is it a handle that names another stream for each device? */
static inline bool kl_user_stream_is_devices(cudaStream_t handle)
{
    return (uintptr_t)handle <= (uintptr_t)koloStreamPerThread;
}

/** As kl_stream_destroy and kl_stream_release, of a stream that may capture. */
ncclResult_t kl_user_stream_destroy(struct kl_stream *stream);
void kl_user_stream_release(struct kl_stream *stream);

/** Wait for what it was given before this call. Returns what failed of that. */
ncclResult_t kl_user_stream_synchronize(struct kl_stream *stream);

/** ncclInProgress, or what has become of it. */
ncclResult_t kl_user_stream_query(struct kl_stream *stream);

/** Wait for what all streams of the device were given before this call. Returns the first failure. */
ncclResult_t kl_user_stream_synchronize_all(int device);

#endif
