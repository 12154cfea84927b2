/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - the table of allocations on host devices.
 *
 * A block is one allocation: private ones come from the heap, shareable ones are a segment each (os/segment.h), with
 * one descriptor that stays open. The table finds blocks by address, so that any pointer can be looked up and a stray
 * free is an error. A block lives until it is freed and all references are dropped.
 *
 *     holds = 1 until freed + pins and exports of ranges in it (ranges.h)
 *
 * Threads: any. The fields of a referenced block are constant.
 * Fork:    a child has the table; shareable blocks are the same memory in both.
 */
#ifndef KL_DEVICE_HOST_MEMORY_H
#define KL_DEVICE_HOST_MEMORY_H

#include "device/memory.h"
#include "include/nccl.h"

#include <stdbool.h>

struct kl_block;

/** As alloc, free and lookup of device/device.h. */
ncclResult_t kl_block_alloc(int device, enum kl_memory_kind kind, size_t bytes, void **ptr);
ncclResult_t kl_block_free(void *ptr);
void kl_block_lookup(const void *ptr, struct kl_memory *memory);

/**
 * Reference the block that contains a range; *block is NULL for foreign memory. A range that is partly in a block:
 * ncclInvalidArgument.
 */
ncclResult_t kl_block_hold(const void *ptr, size_t bytes, struct kl_block **block);

/** Add a reference to a block that has one. Takes no lock. */
void kl_block_hold_again(struct kl_block *block);

/** Drop a reference; the last one frees the memory. NULL is fine. */
void kl_block_drop(struct kl_block *block);

void *kl_block_base(const struct kl_block *block);
size_t kl_block_bytes(const struct kl_block *block);

/** The descriptor of its segment; -1: it is private. Open while the block is referenced. */
int kl_block_fd(const struct kl_block *block);

#endif
