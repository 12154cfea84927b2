/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc.h - memory and events of other processes of this user, by handles of 64 bytes that programs pass on as they like.
 *
 * A handle names a process and its descriptor, which is opened below /proc; so both must see each other there.
 *
 * Errors:  1 no handle, no whole allocation, a process that is gone; 201 opened where it was made.
 * Threads: any.
 */
#ifndef KL_CUDA_IPC_H
#define KL_CUDA_IPC_H

#include "compat/cuda/core/state.h"

cudaError_t kl_cuda_ipc_memory_handle(cudaIpcMemHandle_t *handle, const void *ptr);

/** Opened twice it is the same memory, to be closed as often. */
cudaError_t kl_cuda_ipc_memory_open(void **ptr, const cudaIpcMemHandle_t *handle, unsigned flags);
cudaError_t kl_cuda_ipc_memory_close(void *ptr);

cudaError_t kl_cuda_ipc_event_handle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t kl_cuda_ipc_event_open(cudaEvent_t *event, const cudaIpcEventHandle_t *handle);

#endif
