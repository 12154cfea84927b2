/* SPDX-License-Identifier: Apache-2.0 */
/**
 * region.h - memory for fifos between processes. Other processes map it (event/fdmap.h).
 *
 * A region is one segment with room for one fifo, or for several of equal size: descriptors and mappings are scarce, and a
 * rank may receive from thousands. It is on offer until all its fifos are taken and mapped by their senders. A process maps
 * another one's region once, however many of its ranks send there.
 *
 *     region:  [fifo][fifo][fifo][ free ]      handle, on offer while a fifo is free or not settled
 *
 * Threads: a region and a home belong to one communicator, and one thread at a time.
 */
#ifndef KL_TRANSPORT_SHM_REGION_H
#define KL_TRANSPORT_SHM_REGION_H

#include "event/fdshare.h"
#include "os/segment.h"

#include <stdbool.h>
#include <stdint.h>

struct kl_shm_region;

/** Regions for receiving fifos of one size; each has more fifos than the one before. */
struct kl_shm_slab;

/** A region for one fifo of `bytes`. */
ncclResult_t kl_shm_region_create(size_t bytes, struct kl_shm_region **region);

/** Room for one more fifo of `bytes`, always the same, in a home (made if *home is NULL): region and offset. */
ncclResult_t kl_shm_slab_take(struct kl_shm_slab **home, size_t bytes, struct kl_shm_region **region, size_t *offset);

/** Forget the home; its regions live on while fifos are in them. NULL is fine. */
void kl_shm_slab_free(struct kl_shm_slab *home);

/** Unmap the owner's mapping; `base` is invalid then. The owner maps the region through its export handle, like others. */
void kl_shm_region_unmap(struct kl_shm_region *region);

void *kl_shm_region_base(const struct kl_shm_region *region);
size_t kl_shm_region_bytes(const struct kl_shm_region *region);
const struct kl_fd_export_handle *kl_shm_region_export_handle(const struct kl_shm_region *region);

/** The sender of one of its fifos has mapped it. */
void kl_shm_region_settle(struct kl_shm_region *region);

/** One of its fifos is not needed any more; the last one frees the region. */
void kl_shm_region_release(struct kl_shm_region *region, bool settled);

#endif
