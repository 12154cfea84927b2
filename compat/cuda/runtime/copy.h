/* SPDX-License-Identifier: Apache-2.0 */
/** copy.h - the copies of the runtime on any stream, for the functions of both default streams, and for graphs. */
#ifndef KL_CUDART_COPY_H
#define KL_CUDART_COPY_H

#include "compat/cuda/core/copy.h"

cudaError_t kl_cudart_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream,
                           enum kl_cuda_how how);
cudaError_t kl_cudart_copy_rows(const struct kl_cuda_box *box, enum cudaMemcpyKind kind, cudaStream_t stream,
                                enum kl_cuda_how how);
cudaError_t kl_cudart_copy_box(const struct cudaMemcpy3DParms *p, cudaStream_t stream, enum kl_cuda_how how);
cudaError_t kl_cudart_copy_box_peer(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, enum kl_cuda_how how);
cudaError_t kl_cudart_fill(void *ptr, int value, size_t bytes, cudaStream_t stream, enum kl_cuda_how how);
cudaError_t kl_cudart_fill_box(struct cudaPitchedPtr p, int value, struct cudaExtent e, cudaStream_t stream,
                               enum kl_cuda_how how);

cudaError_t kl_cudart_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream, enum kl_cuda_how how);
cudaError_t kl_cudart_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                                  cudaStream_t stream, enum kl_cuda_how how);

/** Where `bytes` of a variable of the current device are, from `offset` on. Errors: 1 it is smaller, 13. */
cudaError_t kl_cudart_symbol_part(const void *symbol, size_t offset, size_t bytes, char **address);

/** The box that the parameters of a copy describe; with an array its width is in texels. */
cudaError_t kl_cudart_box(const struct cudaMemcpy3DParms *p, struct kl_cuda_box *box);

#endif
