/* SPDX-License-Identifier: Apache-2.0 */
/**
 * work.h - the work of a node that was made by hand. Parameters are copied.
 *
 * Each of the functions that fill work in leaves nothing behind when it fails.
 * Errors:  1 impossible work, 98 and 209 no kernel, 13 no variable, 801 arrays.
 */
#ifndef KL_CUDART_WORK_H
#define KL_CUDART_WORK_H

#include "compat/cuda/core/state.h"
#include "compat/cuda/include/cuda_runtime_api.h"

struct kl_cudart_graph;

struct kl_cudart_work {
    enum cudaGraphNodeType type;
    struct cudaKernelNodeParams kernel; /* kernelParams: `arguments` */
    bool cooperative;
    dim3 cluster;
    int priority;
    void **arguments;
    void *packed; /* the memory that they point to */
    struct cudaMemcpy3DParms copy;
    struct cudaMemsetParams fill;
    struct cudaHostNodeParams host;
    cudaEvent_t event;
    struct cudaMemAllocNodeParams alloc; /* the memory is its graph's */
    void *freed;
    struct cudaConditionalNodeParams condition;
    cudaGraph_t *bodies;            /* the program's handles of `inner`; NULL: none */
    struct kl_cudart_graph **inner; /* a child graph, or a condition's graphs: owned by the node */
    size_t ninner;
};

cudaError_t kl_cudart_work_kernel(struct kl_cudart_work *work, const struct cudaKernelNodeParams *parameters);
cudaError_t kl_cudart_work_copy(struct kl_cudart_work *work, const struct cudaMemcpy3DParms *parameters);
cudaError_t kl_cudart_work_row(struct kl_cudart_work *work, void *to, const void *from, size_t bytes,
                               enum cudaMemcpyKind kind);
cudaError_t kl_cudart_work_fill(struct kl_cudart_work *work, const struct cudaMemsetParams *parameters);
cudaError_t kl_cudart_work_host(struct kl_cudart_work *work, const struct cudaHostNodeParams *parameters);

cudaError_t kl_cudart_work_event(struct kl_cudart_work *work, enum cudaGraphNodeType type, cudaEvent_t event);

/** The graph becomes the work's last inner one. False: memory is short, and it does not. */
bool kl_cudart_work_take(struct kl_cudart_work *work, struct kl_cudart_graph *graph);

/** `graph` is copied. */
cudaError_t kl_cudart_work_child(struct kl_cudart_work *work, cudaGraph_t graph);

/** A graph that must be moved cannot be copied: 1. */
cudaError_t kl_cudart_work_any(struct kl_cudart_work *work, const struct cudaGraphNodeParams *parameters);

/** The same again. False: memory is short. */
bool kl_cudart_work_again(struct kl_cudart_work *work, const struct kl_cudart_work *of);
void kl_cudart_work_end(struct kl_cudart_work *work);

/** Queue it on a stream that captures. Not of inner graphs, nor of events. */
cudaError_t kl_cudart_work_emit(const struct kl_cudart_work *work, cudaStream_t stream);

#endif
