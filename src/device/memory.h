/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - memory of devices: the allocation of a pointer, and ranges that are exported to other processes.
 */
#ifndef KL_DEVICE_MEMORY_H
#define KL_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum kl_memory_kind {
    KL_MEMORY_FOREIGN,   /* not allocated through the table: malloc, the stack, imported memory */
    KL_MEMORY_PRIVATE,   /* koloMalloc */
    KL_MEMORY_SHAREABLE, /* ncclMemAlloc: ranges of it can be exported */
};

/** The allocation that contains a pointer. */
struct kl_memory {
    enum kl_memory_kind kind;
    int device;   /* -1: foreign */
    void *base;   /* NULL: foreign */
    size_t bytes; /* as requested; 0: foreign */
};

/** Identifies an exported range in any process of the host; sent as raw bytes. */
struct kl_range_ticket {
    uint64_t offset, bytes;   /* of the range in its allocation */
    unsigned char handle[64]; /* format of the kind; CUDA's handles need that much */
};
_Static_assert(sizeof(struct kl_range_ticket) == 80, "sent to other processes");

/** An imported range, or an import in progress. Belongs to one thread at a time. */
struct kl_import;

#endif
