/* SPDX-License-Identifier: Apache-2.0 */
/** peer.h - access between devices' memories: by the paths of the topology. Copies work in any case. Threads: any. */
#ifndef KL_CUDA_PEER_H
#define KL_CUDA_PEER_H

#include "compat/cuda/core/state.h"

/** Never with itself. */
cudaError_t kl_cuda_peer_can(int *can, int device, int peer);

/** One way. Errors: 1 flags, 101, 217 not possible, 704 twice, 705 not enabled. */
cudaError_t kl_cuda_peer_enable(int device, int peer, unsigned flags);
cudaError_t kl_cuda_peer_disable(int device, int peer);
cudaError_t kl_cuda_peer_attribute(int *value, int attribute, int from, int to);
void kl_cuda_peers_reset(int device);

#endif
