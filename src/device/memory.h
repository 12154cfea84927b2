/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - memory of devices: what a pointer is, and ranges that other processes are told of.
 */
#ifndef KL_DEVICE_MEMORY_H
#define KL_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum kl_memory_kind {
    KL_MEMORY_FOREIGN,   /* not allocated through the table: malloc, the stack, what was imported */
    KL_MEMORY_PRIVATE,   /* koloMalloc */
    KL_MEMORY_SHAREABLE, /* ncclMemAlloc: ranges of it can be exported */
};

/** The allocation that a pointer is in. */
struct kl_memory {
    enum kl_memory_kind kind;
    int device;   /* -1: foreign */
    void *base;   /* NULL: foreign */
    size_t bytes; /* as asked for; 0: foreign */
};

/** What finds an exported range from any process of the host; sent as raw bytes. */
struct kl_range_ticket {
    uint64_t offset, bytes;   /* of the range in its allocation */
    unsigned char handle[64]; /* the kind's own; CUDA's take that much */
};
_Static_assert(sizeof(struct kl_range_ticket) == 80, "sent to other processes");

/** An imported range, or one that is being imported. Belongs to one thread at a time. */
struct kl_import;

#endif
