/* SPDX-License-Identifier: Apache-2.0 */
/** copies.h - copies and fills on any stream: functions without one are of the legacy stream, or the thread's. */
#ifndef KL_CU_COPIES_H
#define KL_CU_COPIES_H

#include "compat/cuda/core/copy.h"
#include "compat/cuda/include/cuda.h"

struct kl_cu_rows {
    size_t pitch, width, height, element; /* width in elements of so many bytes */
};

CUresult kl_cu_copy(void *to, const void *from, size_t bytes, int kind, CUstream stream, enum kl_cuda_how how);
CUresult kl_cu_copy_rows(const CUDA_MEMCPY2D *copy, CUstream stream, enum kl_cuda_how how);
CUresult kl_cu_copy_box(const CUDA_MEMCPY3D *copy, CUstream stream, enum kl_cuda_how how);
CUresult kl_cu_copy_box_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, enum kl_cuda_how how);

/** The same copy for the runtime, and a copy of the runtime's with its ends as the kind says them. Errors: 1; 801 arrays. */
CUresult kl_cu_copy_to_runtime(struct cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *copy);
void kl_cu_copy_of_runtime(CUDA_MEMCPY3D *to, const struct cudaMemcpy3DParms *copy);

/** So many elements of 1, 2 or 4 bytes. */
CUresult kl_cu_fill(CUdeviceptr ptr, unsigned value, int element, size_t count, CUstream stream, enum kl_cuda_how how);
CUresult kl_cu_fill_rows(CUdeviceptr ptr, struct kl_cu_rows rows, unsigned value, CUstream stream,
                         enum kl_cuda_how how);

#endif
