/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/peer.h"

#include "base/atomic.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/ranges.h"
#include "topo/types.h"

#include <stdlib.h>
#include <string.h>

static _Atomic bool enabled[KL_CUDA_DEVICES][KL_CUDA_DEVICES];

/* ---- KOLO_CUDA_P2P ---- */

static enum kl_cuda_reach reach_of_peers(void)
{
    static _Atomic int known = -1;
    int reach = kl_load_relaxed(&known);

    if (reach >= 0) return (enum kl_cuda_reach)reach;
    const char *text = getenv("KOLO_CUDA_P2P");
    reach = !text || !*text         ? KL_CUDA_REACH_ALL
            : !strcmp(text, "0")    ? KL_CUDA_REACH_NONE
            : !strcmp(text, "lost") ? KL_CUDA_REACH_LOST
                                    : KL_CUDA_REACH_ALL;
    kl_store_relaxed(&known, reach);
    return (enum kl_cuda_reach)reach;
}

enum kl_cuda_reach kl_cuda_peer_reach(int device, const void *address)
{
    const unsigned devices_own = 1u << KL_CUDA_MEMORY_DEVICE | 1u << KL_CUDA_MEMORY_POOL |
                                 1u << KL_CUDA_MEMORY_IMPORTED | 1u << KL_CUDA_MEMORY_MAPPED;
    struct kl_cuda_range range;

    if (reach_of_peers() == KL_CUDA_REACH_ALL || !kl_cuda_ranges_find(address, &range)) return KL_CUDA_REACH_ALL;
    if (!(devices_own >> range.kind & 1)) return KL_CUDA_REACH_ALL;
    const bool own =
        range.kind == KL_CUDA_MEMORY_IMPORTED ? (int)range.flags == kl_cuda_ordinal(device) : range.device == device;
    return own ? KL_CUDA_REACH_ALL : reach_of_peers();
}

cudaError_t kl_cuda_peer_import(int device, int ordinal)
{
    return reach_of_peers() == KL_CUDA_REACH_NONE && ordinal != kl_cuda_ordinal(device) ? cudaErrorPeerAccessUnsupported
                                                                                        : cudaSuccess;
}

/* ---- access ---- */

static cudaError_t path_between(int from, int to, struct kl_cuda_path *path)
{
    const struct kl_cuda_device *a, *b;

    KL_CUDA_TRY(kl_cuda_device(from, &a));
    KL_CUDA_TRY(kl_cuda_device(to, &b));
    *path = kl_cuda_path(a->ordinal, b->ordinal);
    path->p2p &= reach_of_peers() != KL_CUDA_REACH_NONE;
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
