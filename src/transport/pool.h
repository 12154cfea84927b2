/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pool.h - slots that all messages of a rank share, to any receiver.
 *
 * A rank may send to thousands of ranks, but to few at a time. Instead of slots per receiver it has one pool: a segment that each
 * receiver maps once. A message takes a slot when it has data to hand over and gets it back when they have been read. When
 * all are in use, or the receiver has not mapped the pool yet, a message goes on in small steps through the slots of its own
 * fifo, so no message ever waits for another one.
 *
 * Units:   bytes; a slot is named by its offset in the segment.
 * Threads: one at a time, as the messages.
 */
#ifndef KL_TRANSPORT_POOL_H
#define KL_TRANSPORT_POOL_H

#include "os/segment.h"
#include "transport/fifo.h"

struct kl_pool;

/* The most slots of a fifo that may wait for its receiver. */
enum { KL_POOL_DEPTH = 8, KL_POOL_SLOT_BYTES = 64 << 10 };

/**
 * A pool of `nslots` slots; its memory is allocated at the first touch. Slots are taken in turn, and the first ones again when about
 * `cycle_bytes` were written (kl_cache_cycle) and they are free.
 */
ncclResult_t kl_pool_create(uint32_t nslots, size_t slot_bytes, size_t cycle_bytes, struct kl_pool **pool);

/** Free it; no slot may be in use, unless the communicator has ended. NULL is fine. */
void kl_pool_free(struct kl_pool *pool);

/** The memory, to be offered to receivers. */
const struct kl_segment *kl_pool_segment(const struct kl_pool *pool);

size_t kl_pool_slot_bytes(const struct kl_pool *pool);

/** A slot for the next step of `tx`, of `bytes`: where to write, and its offset for kl_fifo_publish_pooled. NULL: none is free now. */
void *kl_pool_take(struct kl_pool *pool, struct kl_fifo_tx *tx, size_t bytes, uint64_t *offset);

/** `tx` is being freed: release its slots. */
void kl_pool_forget(struct kl_pool *pool, const struct kl_fifo_tx *tx);

#endif
