/* SPDX-License-Identifier: Apache-2.0 */
/**
 * copy.h - copies and fills in stream order, with CUDA's guarantees for memory that is not pinned.
 *
 * A source that is not pinned is read before the call returns (but not while its stream captures: then when the graph runs). A destination that is
 * not pinned is written when the call returns.
 *
 * Errors:  1 bad ranges, 12 rows longer than their pitch, 21 the kind.
 * Threads: any.
 */
#ifndef KL_CUDA_COPY_H
#define KL_CUDA_COPY_H

#include "compat/cuda/core/state.h"

/** A box of bytes: rows of `width`, `height` of them in a slice, `depth` slices. */
struct kl_cuda_box {
    void *to;
    const void *from;
    size_t width, height, depth;
    size_t to_pitch, to_slice, from_pitch, from_slice; /* bytes from row to row, from slice to slice */
};

/** The corner of a box in a volume: slices of `height` rows of `pitch` bytes. Without a height it has one slice. */
struct kl_cuda_volume {
    char *base;
    size_t pitch, height, x, y, z;
};

/** The first byte of a box of that size, and the bytes from slice to slice. Errors: 1 behind a slice's last row, 12 behind the row. */
cudaError_t kl_cuda_corner(const struct kl_cuda_volume *volume, const struct kl_cuda_box *box, char **corner,
                           size_t *slice);

enum kl_cuda_how {
    KL_CUDA_ASYNC,        /* ...Async */
    KL_CUDA_READ_AT_ONCE, /* the same, but any source has been read when it returns */
    KL_CUDA_SYNC          /* returns when it is done, except from device to device */
};

/** One row is cudaMemcpy(Async). */
cudaError_t kl_cuda_copy(const struct kl_cuda_box *box, int kind, cudaStream_t stream, enum kl_cuda_how how);

/** Fill boxes at `to` with elements of 1, 2 or 4 bytes; `width` is bytes. */
cudaError_t kl_cuda_fill(const struct kl_cuda_box *box, unsigned value, int element_bytes, cudaStream_t stream,
                         enum kl_cuda_how how);

static inline struct kl_cuda_box kl_cuda_row(void *to, const void *from, size_t bytes)
{
    return (struct kl_cuda_box){.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
}

#endif
