/* SPDX-License-Identifier: Apache-2.0 */
/**
 * multicast.h - multicast objects as a process has them open: its bindings, its maps, and the copies behind them.
 *
 * A mapped object is addresses without memory. Instructions for it (multimem) ask for the copies: the memory bound on each device,
 * also by other processes, which is mapped when it is first asked for, in a window for each device.
 *
 * Errors:  as in multicast_table.h.
 * Threads: open, close, bind, unbind, map and unmap by one thread at a time, with a lock of the caller; all others by any.
 */
#ifndef KL_CUDA_MULTICAST_H
#define KL_CUDA_MULTICAST_H

#include "compat/cuda/core/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_cuda_multicast;

/** The largest team is all devices of the host. NULL: no memory; of open: the descriptor is no object's. */
struct kl_cuda_multicast *kl_cuda_multicast_create(unsigned devices, size_t bytes);
struct kl_cuda_multicast *kl_cuda_multicast_open(int fd);

/** Undo this process's bindings. Nothing of it may be mapped. */
void kl_cuda_multicast_close(struct kl_cuda_multicast *object);

struct kl_cuda_table;
struct kl_cuda_table *kl_cuda_multicast_table(struct kl_cuda_multicast *object);

/** Memory to be bound. `drop` is called when it is bound no more, with the caller's lock. */
struct kl_cuda_bound_memory {
    int fd, ordinal; /* its segment; its device */
    size_t offset;
    void *owner;
    void (*drop)(void *owner);
};

/** The team must be complete. On errors the memory is not kept. */
cudaError_t kl_cuda_multicast_bind(struct kl_cuda_multicast *object, size_t offset, size_t bytes,
                                   const struct kl_cuda_bound_memory *memory);
cudaError_t kl_cuda_multicast_unbind(struct kl_cuda_multicast *object, int ordinal, size_t offset, size_t bytes);

/** Addresses [base, base + bytes) are the object's from `offset` on, without access until that is allowed. */
cudaError_t kl_cuda_multicast_map(struct kl_cuda_multicast *object, char *base, size_t bytes, size_t offset);
void kl_cuda_multicast_allow(const char *base, bool access);
void kl_cuda_multicast_unmap(const char *base);

/** The copies of some bytes: the device with the lowest ordinal has the first one, the next one `stride` bytes behind it. */
struct kl_cuda_copies {
    char *first;
    size_t stride;
    unsigned count;
};

/** NULL, or the reason why there are none. A copy may still be missing: an access to it is a fault. */
const char *kl_cuda_multicast_copies(const void *address, size_t bytes, struct kl_cuda_copies *copies);

/** The reason why an access to an address fails, in the thread's memory; NULL: it has nothing to do with multicast. */
const char *kl_cuda_multicast_explain(const void *address);

#endif
