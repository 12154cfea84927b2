/* SPDX-License-Identifier: Apache-2.0 */
/**
 * event.h - events: kolo's, each of the device that was current when it was made. One between processes is a counter in shared memory.
 *
 * Errors:  400 for an invalid event, or one without time; 600 not done; 905 to 907 in captures.
 * Threads: any; one at a time destroys an event.
 */
#ifndef KL_CUDA_EVENT_H
#define KL_CUDA_EVENT_H

#include "compat/cuda/core/state.h"

#include <sys/types.h>

cudaError_t kl_cuda_event_create(cudaEvent_t *event, unsigned flags);
cudaError_t kl_cuda_event_destroy(cudaEvent_t event);

/** flags: cudaEventRecordExternal, which makes it a node where the stream captures. Of an event between processes: 900. */
cudaError_t kl_cuda_event_record(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t kl_cuda_event_query(cudaEvent_t event);
cudaError_t kl_cuda_event_synchronize(cudaEvent_t event);
cudaError_t kl_cuda_event_elapsed(float *ms, cudaEvent_t start, cudaEvent_t end);
cudaError_t kl_cuda_event_order(cudaStream_t stream, cudaEvent_t event, unsigned flags);

bool kl_cuda_event_known(cudaEvent_t event);

/** The segment of an event between processes. 1: it is not one. */
cudaError_t kl_cuda_event_segment(cudaEvent_t event, int *fd);

/** An event on a segment; takes ownership of its descriptor. */
cudaError_t kl_cuda_event_open(cudaEvent_t *event, int fd);

/** Destroy all events of a device. */
void kl_cuda_events_reset(int device);

#endif
