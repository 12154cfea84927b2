/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream.h - streams: kolo.h's, with CUDA's additional properties.
 *
 * Handles are kolo's, so that collectives take them as they are: 0 and 1 the legacy stream, 2 the thread's.
 * Errors:  400 for an invalid stream; 900 to 908 for calls that a capture forbids; the device's failure.
 * Threads: any.
 */
#ifndef KL_CUDA_STREAM_H
#define KL_CUDA_STREAM_H

#include "compat/cuda/core/state.h"

enum { KL_CUDA_PRIORITY_LEAST = 0, KL_CUDA_PRIORITY_GREATEST = -5 };

struct kl_cuda_stream_info {
    int device, priority;
    unsigned flags; /* cudaStreamNonBlocking */
    unsigned long long id;
    unsigned queue; /* of the device, counted in the order of creation; 0: the built-in streams */
};

cudaError_t kl_cuda_stream_create(cudaStream_t *stream, unsigned flags, int priority);

/** Returns at once; queued work still runs. */
cudaError_t kl_cuda_stream_destroy(cudaStream_t stream);
/** Attributes that a stream keeps, without effect on CPUs: set, and given back. A built-in stream keeps none. */
struct kl_cuda_stream_hints {
    struct cudaAccessPolicyWindow window;
    enum cudaSynchronizationPolicy policy;
};
void kl_cuda_stream_set_hints(cudaStream_t stream, const struct kl_cuda_stream_hints *hints);
struct kl_cuda_stream_hints kl_cuda_stream_hints(cudaStream_t stream);
cudaError_t kl_cuda_stream_info(cudaStream_t stream, struct kl_cuda_stream_info *info);
cudaError_t kl_cuda_stream_synchronize(cudaStream_t stream);
cudaError_t kl_cuda_stream_query(cudaStream_t stream);

/** Does it capture? False for an invalid stream. */
bool kl_cuda_stream_captures(cudaStream_t stream);

/** Wait for all of a device's streams but those that capture. */
cudaError_t kl_cuda_device_wait(int device);

/** cudaDeviceSynchronize: all streams of the current device; one that captures is refused. */
cudaError_t kl_cuda_device_synchronize(void);

/** Destroy all streams of a device. */
void kl_cuda_streams_reset(int device);

/**
 * Call `run(data)` in stream order, and `drop(data)` when it will not be called again: afterwards, or with the graph that it became part
 * of. If it cannot be queued, `drop` has been called.
 */
cudaError_t kl_cuda_stream_call(cudaStream_t stream, void (*run)(void *data), void (*drop)(void *data), void *data);

#endif
