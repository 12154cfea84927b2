/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hugepages.h - huge pages under memory that large operations use again and again.
 *
 * Whoever reads or writes megabytes looks up their pages: the kernel when it copies between processes, and a CPU when it has forgotten them. With pages of
 * 2 MiB instead of 4 KiB, two processes that read 2 MiB of each other through the kernel take 0.9 times as long, 8 MiB 0.83, 32 MiB 0.67 and 128 MiB 0.83 times. Most
 * systems give such pages only to programs that ask, and few do. Changing a block takes 0.5 ms: less than touching it for the first time did, and as long as using it
 * three to six times; ten times as long in a virtual machine that has to be given the memory first. So it is done when memory is used for the second time: what is used
 * once, as the parameters of a model that are broadcast before it is trained, is left alone.
 *
 * Nothing else changes: contents and addresses stay as they are, whoever reads or writes meanwhile waits. Only blocks that belong to a buffer as a whole are changed.
 * What cannot be changed stays as it is (it is no memory, a device's, pinned; there is no room).
 *
 * Threads:  one at a time.
 * Source:   madvise(2), MADV_COLLAPSE: Linux 6.1.
 */
#ifndef KL_OS_HUGEPAGES_H
#define KL_OS_HUGEPAGES_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KL_HUGEPAGES_BLOCKS = 4096, /* known at a time: of 8 GiB */
    KL_HUGEPAGES_MOST_MS = 500, /* for an operation; it may be held up for one block more */
    KL_HUGEPAGES_SLOW_MS = 20,  /* a block that takes longer has failed: memory had to be cleared for it, */
    KL_HUGEPAGES_FAILURES = 32, /* and after so many in a row no more is tried */
};

/** How it is done. */
struct kl_hugepages_system {
    size_t block_bytes;                     /* of a huge page, a power of two */
    bool (*change)(void *at, size_t bytes); /* a block; true: it is a huge page now */
    uint64_t (*now_ns)(void);
};

struct kl_hugepages {
    struct kl_hugepages_system system;
    uint64_t spent_ns; /* on blocks of the operation */
    unsigned failures;
    uint64_t blocks[KL_HUGEPAGES_BLOCKS]; /* by number: that number and, in the lowest 8 bits, how often it was used */
};

/** What this system does; block_bytes 0: it has no huge pages for memory that is in use, or its administrator wants none. `dir`: /sys/kernel/mm/transparent_hugepage. */
struct kl_hugepages_system kl_hugepages_system_of(const char *dir);

/** NULL where block_bytes is 0. ncclSystemError: no memory. */
ncclResult_t kl_hugepages_create(const struct kl_hugepages_system *system, struct kl_hugepages **pages);
void kl_hugepages_free(struct kl_hugepages *pages);

/** An operation, or several together, is about to begin. */
void kl_hugepages_begin(struct kl_hugepages *pages);

/** It uses all of this memory: here, or another process does. */
void kl_hugepages_use(struct kl_hugepages *pages, const void *at, size_t bytes);

#endif
