/* SPDX-License-Identifier: Apache-2.0 */
/** array.h - arrays: memory with the description that kernels read. */
#ifndef KL_CUDART_ARRAY_H
#define KL_CUDART_ARRAY_H

#include "compat/cuda/core/copy.h"
#include "compat/cuda/include/kolo_cuda/texture.h"

struct cudaArray {
    struct koloCudaTexture view;
    struct cudaChannelFormatDesc format;
    struct cudaExtent extent; /* as it was asked for */
    unsigned flags;
};

/** Bytes of a texel. */
size_t kl_cudart_texel_bytes(const struct koloCudaTexture *view);

/** Where a place in an array is, and the bytes of its texels. False: there is no array. */
bool kl_cudart_array_volume(cudaArray_const_t array, struct cudaPos at, struct kl_cuda_volume *volume, size_t *texel);

#endif
