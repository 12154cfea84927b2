/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - memory of CUDA devices: allocation, the device of a pointer, and checks before a kernel uses it. A bad
 * pointer in a kernel loses the program's context, so it is refused before.
 *
 * For the functions of the table see device/device.h.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_CUDA_MEMORY_H
#define KL_DEVICE_CUDA_MEMORY_H

#include "device/cuda/context.h"
#include "device/memory.h"

ncclResult_t kl_cuda_alloc(int device, enum kl_memory_kind kind, size_t bytes, void **ptr);
ncclResult_t kl_cuda_free(void *ptr);
void kl_cuda_lookup(const void *ptr, struct kl_memory *memory);

/**
 * Can each of `n` devices read and write `bytes` from `ptr` on? Else ncclInvalidArgument, with a sentence that begins
 * with `name`: the memory is not CUDA's, ends before, or is not mapped by all of them. One of the contexts is current.
 */
ncclResult_t kl_cuda_check(const struct kl_cuda_context *const *devices, int n, const char *name, const void *ptr,
                           size_t bytes);

#endif
