/* SPDX-License-Identifier: Apache-2.0 */
/** capture.h - captures that are under way, by their number. Threads: any. */
#ifndef KL_CUDART_CAPTURE_H
#define KL_CUDART_CAPTURE_H

#include "compat/cuda/runtime/graph.h"

cudaError_t kl_cudart_capture_begin(cudaStream_t stream, int mode);

/** The capture becomes one node of a graph made by hand. */
cudaError_t kl_cudart_capture_begin_into(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
                                         size_t count, int mode);

/** `graph` may be NULL only if the program has it already. */
cudaError_t kl_cudart_capture_end(cudaStream_t stream, cudaGraph_t *graph);

struct kl_cudart_capture_info {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph; /* where it will be */
};
cudaError_t kl_cudart_capture_info(cudaStream_t stream, struct kl_cudart_capture_info *info);

#endif
