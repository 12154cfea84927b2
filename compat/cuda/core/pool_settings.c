/* SPDX-License-Identifier: Apache-2.0 */
/** pool_settings.c - attributes of pools, and access to them. */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/core/pool_blocks.h"

#include <string.h>

/* ---- attributes ---- */

static cudaError_t set_locked(struct kl_cuda_pool *p, int attribute, const void *value)
{
    uint64_t number = 0;

    if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
        attribute <= cudaMemPoolReuseAllowInternalDependencies) {
        memcpy(&p->reuse[attribute], value, sizeof(int));
        return cudaSuccess;
    }
    memcpy(&number, value, sizeof number);
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        p->threshold = number;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh: /* only reset */
        if (number) return cudaErrorInvalidValue;
        p->reserved_high = p->reserved;
        return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
        if (number) return cudaErrorInvalidValue;
        p->used_high = p->used;
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

static cudaError_t get_locked(const struct kl_cuda_pool *p, int attribute, void *value)
{
    const uint64_t number[] = {[cudaMemPoolAttrReleaseThreshold] = p->threshold,
                               [cudaMemPoolAttrReservedMemCurrent] = p->reserved,
                               [cudaMemPoolAttrReservedMemHigh] = p->reserved_high,
                               [cudaMemPoolAttrUsedMemCurrent] = p->used,
                               [cudaMemPoolAttrUsedMemHigh] = p->used_high};

    if (attribute < cudaMemPoolReuseFollowEventDependencies || attribute > cudaMemPoolAttrUsedMemHigh)
        return cudaErrorInvalidValue;
    if (attribute < cudaMemPoolAttrReleaseThreshold)
        memcpy(value, &p->reuse[attribute], sizeof(int));
    else
        memcpy(value, &number[attribute], sizeof number[0]);
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_set(cudaMemPool_t handle, int attribute, const void *value)
{
    struct kl_cuda_pool *p;

    if (!value) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    return kl_cuda_pool_let_go(set_locked(p, attribute, value));
}

cudaError_t kl_cuda_pool_get(cudaMemPool_t handle, int attribute, void *value)
{
    struct kl_cuda_pool *p;

    if (!value) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    return kl_cuda_pool_let_go(get_locked(p, attribute, value));
}

/* ---- access rights: checked against the topology, and stored. All devices can access the memory here ---- */

cudaError_t kl_cuda_pool_check_access(int own, const struct cudaMemAccessDesc *d)
{
    int can;

    if (d->location.type != cudaMemLocationTypeDevice ||
        (d->flags != cudaMemAccessFlagsProtNone && d->flags != cudaMemAccessFlagsProtRead &&
         d->flags != cudaMemAccessFlagsProtReadWrite))
        return cudaErrorInvalidValue;
    if (d->location.id == own)
        return d->flags == cudaMemAccessFlagsProtReadWrite ? cudaSuccess : cudaErrorInvalidDevice;
    KL_CUDA_TRY(kl_cuda_peer_can(&can, d->location.id, own));
    return can || d->flags == cudaMemAccessFlagsProtNone ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t kl_cuda_pool_set_access(cudaMemPool_t handle, const struct cudaMemAccessDesc *list, size_t count)
{
    struct kl_cuda_pool *p;
    int own;

    if (count && !list) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_device(handle, &own));
    for (size_t i = 0; i < count; i++) KL_CUDA_TRY(kl_cuda_pool_check_access(own, &list[i]));
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    for (size_t i = 0; i < count; i++) p->access[list[i].location.id] = (uint8_t)list[i].flags;
    return kl_cuda_pool_let_go(cudaSuccess);
}

cudaError_t kl_cuda_pool_get_access(enum cudaMemAccessFlags *flags, cudaMemPool_t handle,
                                    const struct cudaMemLocation *where)
{
    const struct kl_cuda_device *device;
    struct kl_cuda_pool *p;

    if (!flags || !where || where->type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_device(where->id, &device));
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    *flags = (enum cudaMemAccessFlags)p->access[where->id];
    return kl_cuda_pool_let_go(cudaSuccess);
}
