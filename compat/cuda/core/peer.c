/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/peer.h"

#include "base/atomic.h"
#include "compat/cuda/core/device.h"
#include "topo/types.h"

static _Atomic bool enabled[KL_CUDA_DEVICES][KL_CUDA_DEVICES];

static cudaError_t path_between(int from, int to, struct kl_cuda_path *path)
{
    const struct kl_cuda_device *a, *b;

    KL_CUDA_TRY(kl_cuda_device(from, &a));
    KL_CUDA_TRY(kl_cuda_device(to, &b));
    *path = kl_cuda_path(a->ordinal, b->ordinal);
    return cudaSuccess;
}

cudaError_t kl_cuda_peer_can_access(int *can, int device, int peer)
{
    struct kl_cuda_path path;

    if (!can) return cudaErrorInvalidValue;
    KL_CUDA_TRY(path_between(device, peer, &path));
    *can = path.p2p;
    return cudaSuccess;
}

cudaError_t kl_cuda_peer_enable(int device, int peer, unsigned flags)
{
    struct kl_cuda_path path;

    if (flags) return cudaErrorInvalidValue;
    KL_CUDA_TRY(path_between(device, peer, &path));
    if (device == peer) return cudaErrorInvalidDevice;
    if (!path.p2p) return cudaErrorPeerAccessUnsupported;
    return atomic_exchange_explicit(&enabled[device][peer], true, memory_order_relaxed)
               ? cudaErrorPeerAccessAlreadyEnabled
               : cudaSuccess;
}

cudaError_t kl_cuda_peer_disable(int device, int peer)
{
    struct kl_cuda_path path;

    KL_CUDA_TRY(path_between(device, peer, &path));
    return atomic_exchange_explicit(&enabled[device][peer], false, memory_order_relaxed)
               ? cudaSuccess
               : cudaErrorPeerAccessNotEnabled;
}

void kl_cuda_peers_reset(int device)
{
    for (int i = 0; i < KL_CUDA_DEVICES; i++) kl_store_relaxed(&enabled[device][i], false);
}

cudaError_t kl_cuda_peer_attribute(int *value, int attribute, int from, int to)
{
    struct kl_cuda_path path;

    if (!value) return cudaErrorInvalidValue;
    KL_CUDA_TRY(path_between(from, to, &path));
    if (from == to) return cudaErrorInvalidDevice;
    switch (attribute) {
    case cudaDevP2PAttrPerformanceRank: /* 0 is best */
        *value = path.type <= KL_PATH_NVL ? 0 : 1;
        return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
        *value = path.p2p;
        return cudaSuccess;
    case cudaDevP2PAttrNativeAtomicSupported:
        *value = path.p2p && path.type <= KL_PATH_NVL;
        return cudaSuccess;
    case cudaDevP2PAttrCudaArrayAccessSupported:
    case cudaDevP2PAttrOnlyPartialNativeAtomicSupported:
        *value = 0;
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}
