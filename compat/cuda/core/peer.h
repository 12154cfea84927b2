/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer.h - access between devices' memories: by the paths of the topology.
 *
 * KOLO_CUDA_P2P=0: no device has access to another's memory; a kernel with the address of such memory among its
 * parameters is error 700, and in strict mode (strict.h) a copy from device to device is error 217; else copies work.
 * KOLO_CUDA_P2P=lost: all calls succeed, but kernels and copies that would write another device's memory do nothing, as
 * behind an IOMMU that drops writes.
 *
 * Threads: any.
 */
#ifndef KL_CUDA_PEER_H
#define KL_CUDA_PEER_H

#include "compat/cuda/core/state.h"

/** Never with itself. */
cudaError_t kl_cuda_peer_can_access(int *can, int device, int peer);

/** One way. Errors: 1 flags, 101, 217 not possible, 704 twice, 705 not enabled. */
cudaError_t kl_cuda_peer_enable(int device, int peer, unsigned flags);
cudaError_t kl_cuda_peer_disable(int device, int peer);
cudaError_t kl_cuda_peer_attribute(int *value, int attribute, int from, int to);
void kl_cuda_peers_reset(int device);

enum kl_cuda_reach {
    KL_CUDA_REACH_ALL,
    KL_CUDA_REACH_NONE, /* it has no access */
    KL_CUDA_REACH_LOST  /* its writes get lost */
};

/** May it import memory of the device with this ordinal? Else 217. */
cudaError_t kl_cuda_peer_import(int device, int ordinal);

/** Can a device reach the memory at an address, whose owner may be another device? Any number may be asked for. */
enum kl_cuda_reach kl_cuda_peer_reach(int device, const void *address);

#endif
