/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/reset.h"

#include "compat/cuda/core/event.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/stream.h"

cudaError_t kl_cuda_reset(int device)
{
    KL_CUDA_TRY(kl_cuda_device_wait(device));
    kl_cuda_streams_reset(device);
    kl_cuda_events_reset(device);
    kl_cuda_memory_reset(device);
    kl_cuda_peers_reset(device);
    __atomic_store_n(&kl_cuda_primary(device)->alive, false, __ATOMIC_RELAXED);
    return cudaSuccess;
}
