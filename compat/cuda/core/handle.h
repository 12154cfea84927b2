/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handle.h - handles of objects: numbers that are looked up, so that the use of a destroyed handle is an error.
 *
 * Threads: any. Destroying an object while another thread uses it is undefined, as with CUDA.
 */
#ifndef KL_CUDA_HANDLE_H
#define KL_CUDA_HANDLE_H

#include <stdbool.h>

enum kl_cuda_kind {
    KL_CUDA_EVENT = 1,
    KL_CUDA_GRAPH,
    KL_CUDA_NODE,
    KL_CUDA_EXEC,
    KL_CUDA_POOL,
    KL_CUDA_OBJECT,
    KL_CUDA_ALLOCATION,
    KL_CUDA_CONTEXT,
    KL_CUDA_EVENT_SET
};

/** A handle for `object`, NULL when memory is short. */
void *kl_cuda_handle_make(enum kl_cuda_kind kind, void *object);

/** The object, NULL if there is none of this kind. */
void *kl_cuda_handle_find(enum kl_cuda_kind kind, const void *handle);

/** The same, and remove the handle. */
void *kl_cuda_handle_take(enum kl_cuda_kind kind, const void *handle);

/** Call `visit` for the handles of a kind, until it returns true. It may not make or take handles. */
void kl_cuda_handle_each(enum kl_cuda_kind kind, bool (*visit)(void *ctx, void *handle, void *object), void *ctx);

#endif
