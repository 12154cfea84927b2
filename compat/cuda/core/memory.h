/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - memory of devices and of the host, with CUDA's functions: all of it is host memory that is counted.
 *
 * Allocations of a device (cudaMalloc, pools, managed memory, cuMemCreate) count against the device's memory, for all
 * processes of a job (ledger.h).
 * Errors:  as CUDA's; too much is 2.
 * Threads: any.
 */
#ifndef KL_CUDA_MEMORY_H
#define KL_CUDA_MEMORY_H

#include "compat/cuda/core/book.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/state.h"

/** cudaMalloc and the like: `kind` is device, managed, or pool. bytes 0: *ptr = NULL. */
cudaError_t kl_cuda_alloc(int device, enum kl_cuda_memory kind, size_t bytes, unsigned flags, void *owner, void **ptr);

/** Pinned memory of the host. */
cudaError_t kl_cuda_host_alloc(size_t bytes, unsigned flags, void **ptr);

/** cudaFree: waits for the work of its device. NULL is fine; error 1 for a foreign pointer. */
cudaError_t kl_cuda_free(void *ptr);

/** Free a range that has been taken out of the book. */
void kl_cuda_release(const struct kl_cuda_range *range);

cudaError_t kl_cuda_host_free(void *ptr);
cudaError_t kl_cuda_host_register(void *ptr, size_t bytes, unsigned flags);
cudaError_t kl_cuda_host_unregister(void *ptr);

/** Count `bytes` of a device as allocated, or, if negative, as freed. False: not enough is left. */
bool kl_cuda_count(int device, int64_t bytes);

/** Free bytes of a device of the host. `device`: its number in this process; -1: it is not visible. */
size_t kl_cuda_memory_left(const struct kl_cuda_device *d, int device);

/** Free and total bytes of a device; and the bytes that this process has of it. */
cudaError_t kl_cuda_memory_info(int device, size_t *free_bytes, size_t *total_bytes);
size_t kl_cuda_memory_here(int device);

/** Free all that a device gave, and memory of the host that was pinned or registered while it was current, without waiting. */
void kl_cuda_memory_reset(int device);

/** The beginning of a device segment's link in /proc/PID/fd, up to a space: a process that has it open uses the device. */
#define KL_CUDA_SEGMENT_LINK "/memfd:kolo-cuda-device-"
enum { KL_CUDA_SEGMENT_LINK_TEXT = sizeof KL_CUDA_SEGMENT_LINK + 40 };
void kl_cuda_segment_link(const struct kl_cuda_device *device, char link[KL_CUDA_SEGMENT_LINK_TEXT]);

/** The segment that a device's memory is in; -1: it cannot be made. */
int kl_cuda_memory_segment(int device);

/** The offset of a piece in it. */
size_t kl_cuda_memory_offset(const struct kl_cuda_range *range);

#endif
