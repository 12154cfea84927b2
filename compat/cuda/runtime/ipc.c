/* SPDX-License-Identifier: Apache-2.0 */
/** ipc.c - memory and events of other processes. */
#include "compat/cuda/core/ipc.h"

#include "compat/cuda/runtime/entry.h"

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
    return kl_cudart_done(kl_cuda_ipc_memory_handle(handle, ptr));
}
KL_CUDART_ENTRY(cudaIpcGetMemHandle);

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    return kl_cudart_done(kl_cuda_ipc_memory_open(ptr, &handle, flags));
}
KL_CUDART_ENTRY(cudaIpcOpenMemHandle);

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
    return kl_cudart_done(kl_cuda_ipc_memory_close(ptr));
}
KL_CUDART_ENTRY(cudaIpcCloseMemHandle);

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    return kl_cudart_done(kl_cuda_ipc_event_handle(handle, event));
}
KL_CUDART_ENTRY(cudaIpcGetEventHandle);

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    return kl_cudart_done(kl_cuda_ipc_event_open(event, &handle));
}
KL_CUDART_ENTRY(cudaIpcOpenEventHandle);
