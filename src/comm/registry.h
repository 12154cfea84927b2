/* SPDX-License-Identifier: Apache-2.0 */
/**
 * registry.h - buffers that a program has told a communicator of.
 *
 * A registered range is pinned (device.h): it stays mapped, also when its owner frees it, until it is deregistered. Handles are
 * numbers that are not used twice.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_REGISTRY_H
#define KL_COMM_REGISTRY_H

#include "device/device.h"

struct kl_registered {
    uintptr_t handle;
    uint64_t pin;
};

/** Zeroed at first. */
struct kl_registry {
    struct kl_registered *entry;
    size_t n, room;
    uintptr_t last; /* handle given */
};

ncclResult_t kl_registry_add(struct kl_registry *registry, const struct kl_device_kind *devices, const void *ptr,
                             size_t bytes, void **handle);

/** No such handle: ncclInvalidUsage. */
ncclResult_t kl_registry_remove(struct kl_registry *registry, const struct kl_device_kind *devices, const void *handle);

/** Unpin what is left, and free. */
void kl_registry_fini(struct kl_registry *registry, const struct kl_device_kind *devices);

#endif
