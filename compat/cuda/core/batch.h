/* SPDX-License-Identifier: Apache-2.0 */
/** batch.h - many copies by one call, one after the other. */
#ifndef KL_CUDA_BATCH_H
#define KL_CUDA_BATCH_H

#include "compat/cuda/core/copy.h"

struct kl_cuda_batch {
    void *const *to;
    const void *const *from;
    const size_t *bytes;
    size_t count;
    const struct cudaMemcpyAttributes *attributes;
    const size_t *first; /* index of the first copy with these attributes, up to the next entry; the first is 0 */
    size_t nattributes;
};

/**
 * Queue them on a stream, which may not be the legacy one. *failed: the copy that could not be queued, or SIZE_MAX; may be NULL.
 * Errors: 1 for an invalid batch, else the errors of copies.
 */
cudaError_t kl_cuda_copy_batch(const struct kl_cuda_batch *batch, cudaStream_t stream, size_t *failed);

/** The same for boxes. Arrays: 801. */
cudaError_t kl_cuda_copy_box_batch(const struct cudaMemcpy3DBatchOp *list, size_t count, cudaStream_t stream,
                                   size_t *failed);

#endif
