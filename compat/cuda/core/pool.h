/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pool.h - memory that is allocated and freed in stream order.
 *
 * An address is valid at the call. Memory that a stream frees becomes free when the stream gets there. The same stream may
 * reuse it at once, as work is in order; others later. A pool keeps free memory; the part above its release threshold goes
 * back to the device at a synchronisation or a trim. Memory of a capture belongs to the graph, and lives as long.
 *
 * Threads: any.
 */
#ifndef KL_CUDA_POOL_H
#define KL_CUDA_POOL_H

#include "compat/cuda/core/state.h"

cudaError_t kl_cuda_pool_default(cudaMemPool_t *pool, int device);
cudaError_t kl_cuda_pool_current(cudaMemPool_t *pool, int device);
cudaError_t kl_cuda_pool_choose(int device, cudaMemPool_t pool);
cudaError_t kl_cuda_pool_create(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
cudaError_t kl_cuda_pool_destroy(cudaMemPool_t pool);
cudaError_t kl_cuda_pool_trim(cudaMemPool_t pool, size_t keep_bytes);
cudaError_t kl_cuda_pool_set(cudaMemPool_t pool, int attribute, const void *value);
cudaError_t kl_cuda_pool_get(cudaMemPool_t pool, int attribute, void *value);
cudaError_t kl_cuda_pool_device(cudaMemPool_t pool, int *device);

/** Set access for devices, as the topology allows. Errors: 101 no path from there, or the pool's own device would lose access. */
cudaError_t kl_cuda_pool_set_access(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count);
cudaError_t kl_cuda_pool_get_access(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                    const struct cudaMemLocation *where);

/** A descriptor of a pool that was created for sharing by descriptor; the caller owns it. Errors: 1 for other pools. */
cudaError_t kl_cuda_pool_export(int *fd, cudaMemPool_t pool, int type, unsigned flags);

/** A pool of the process that exported `fd`. `fd` stays the caller's. The pool only has imported memory, and allocates none. */
cudaError_t kl_cuda_pool_import(cudaMemPool_t *pool, int fd, int type, unsigned flags);
cudaError_t kl_cuda_pool_export_pointer(struct cudaMemPoolPtrExportData *out, const void *ptr);

/** Import memory, which is freed like any of a pool. Errors: 1 not of that pool's process. */
cudaError_t kl_cuda_pool_import_pointer(void **ptr, cudaMemPool_t pool, const struct cudaMemPoolPtrExportData *in);

/** `pool` NULL: the current one of the stream's device. */
cudaError_t kl_cuda_pool_alloc(cudaMemPool_t pool, void **ptr, size_t bytes, cudaStream_t stream);

/** Allocate from a device's current pool for a graph, which frees `block` at its end. */
cudaError_t kl_cuda_pool_alloc_for_graph(int device, size_t bytes, void **ptr, void **block);
void kl_cuda_pool_end_of_graph(void *block);

/** Bytes on a device that belong to graphs: now, and the most since the last reset; either pointer may be NULL. */
void kl_cuda_pool_of_graphs(int device, uint64_t *now, uint64_t *most);
void kl_cuda_pool_reset_of_graphs(int device);

/** The pool of an address; NULL: it is in no memory of a pool. */
cudaMemPool_t kl_cuda_pool_of(const void *ptr);

/** Does a graph's memory begin here? */
bool kl_cuda_pool_is_graphs(const void *ptr);

/** May a pool of the device have this access? Errors: 1, 101 as kl_cuda_pool_set_access. */
cudaError_t kl_cuda_pool_check_access(int device, const struct cudaMemAccessDesc *access);

/** Also memory of cudaMalloc. */
cudaError_t kl_cuda_pool_free(void *ptr, cudaStream_t stream);

/** By cudaFree: now. */
cudaError_t kl_cuda_pool_free_now(void *ptr);

/** After a synchronisation: return the pools' free memory above their thresholds to the device. */
void kl_cuda_pool_trim_to_threshold(int device);

/** Forget the memory of a device's pools: it is gone. */
void kl_cuda_pools_reset(int device);

#endif
