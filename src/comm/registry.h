/* SPDX-License-Identifier: Apache-2.0 */
/**
 * registry.h - buffers that a program has registered with a communicator: ranges and windows.
 *
 * A registered range is pinned (device.h): it stays mapped, also when its owner frees it, until it is deregistered.
 * Handles are numbers that the process uses once; the lower 16 bits hold the slot of the communicator
 * (kl_handle_number).
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_REGISTRY_H
#define KL_COMM_REGISTRY_H

#include "device/device.h"

struct kl_registered {
    uintptr_t handle;
    uint64_t pin;
    void *ptr; /* as the program gave it */
};

/** Zeroed at first. */
struct kl_registry {
    struct kl_registered *entry;
    size_t n, room;
};

/** For the communicator in slot `number`. */
ncclResult_t kl_registry_add(struct kl_registry *registry, unsigned number, const struct kl_device_kind *devices,
                             void *ptr, size_t bytes, uintptr_t *handle);

/** NULL: no such handle. Valid until the next change. */
const struct kl_registered *kl_registry_find(const struct kl_registry *registry, uintptr_t handle);

/** The entry for `function`. There is none: ncclInvalidUsage. */
ncclResult_t kl_registry_get(const struct kl_registry *registry, uintptr_t handle, const char *function,
                             const struct kl_registered **entry);

/** Remove a registration that was found. */
ncclResult_t kl_registry_remove(struct kl_registry *registry, const struct kl_device_kind *devices,
                                const struct kl_registered *entry);

/** Unpin the remaining registrations, and free. */
void kl_registry_fini(struct kl_registry *registry, const struct kl_device_kind *devices);

#endif
