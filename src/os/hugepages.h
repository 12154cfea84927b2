/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hugepages.h - huge pages under memory that large operations use again and again.
 *
 * The kernel looks up and pins every page that it copies between processes, and a CPU has to walk page tables again for pages that have left its TLB. With pages of
 * 2 MiB instead of 4 KiB, two processes that read 2 MiB of each other through the kernel take 0.9 times as long, 8 MiB 0.83, 32 MiB 0.67 and 128 MiB 0.83 times. Many
 * systems give such pages only to programs that ask, and few do. To collapse the pages of a block into one takes 0.5 ms: less than touching the block for the first time
 * did, and as long as using it three to six times; ten times as long in a virtual machine whose host has taken the memory back, and far longer beside programs that
 * compute. So memory that is used once, as the parameters of a model that are broadcast before it is trained, is left alone, and blocks that are used again are
 * collapsed one by one: all of them together take at most a tenth of the time that the operations took which used such memory.
 *
 * Nothing else changes: contents and addresses stay as they are, and threads that read or write the block meanwhile wait. Only blocks that lie in a buffer as a whole are
 * collapsed. Where that is not possible (not memory of the host, pinned, no free huge page), pages stay as they are.
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
    KL_HUGEPAGES_BLOCKS = 4096,     /* known at a time: 8 GiB */
    KL_HUGEPAGES_SHARE = 10,        /* of the time that operations take, one part in so many may be spent */
    KL_HUGEPAGES_EXPECTED_US = 500, /* for a block, before any was collapsed */
    KL_HUGEPAGES_SLOW_MS = 20, /* a block that takes longer counts as failed: the kernel had to compact memory for it */
    KL_HUGEPAGES_FAILURES = 32, /* in a row, after which no more is tried */
};

/** How it is done. */
struct kl_hugepages_system {
    size_t block_bytes;                       /* of a huge page, a power of two */
    bool (*collapse)(void *at, size_t bytes); /* the pages of a block; true: it is one huge page now */
    uint64_t (*now_ns)(void);
    uint64_t (*cpu_ns)(void); /* of this thread: what a block costs, whatever else its core runs meanwhile */
};

struct kl_hugepages {
    struct kl_hugepages_system system;
    int64_t credit_ns;   /* that may be spent on blocks; one that takes longer than expected overdraws it */
    int64_t expected_ns; /* of the next block, from those before */
    int64_t spent_ns;    /* of the operation under way: on blocks, */
    uint64_t began_ns;   /* since then, */
    size_t bytes;        /* on so much memory */
    unsigned failures;
    uint64_t blocks[KL_HUGEPAGES_BLOCKS]; /* by number: that number and, in the lowest 8 bits, how often it was used */
};

/** What this system does; block_bytes 0: it has no huge pages for memory that is in use, or its administrator wants none. `dir`: /sys/kernel/mm/transparent_hugepage. */
struct kl_hugepages_system kl_hugepages_system_of(const char *dir);

/** NULL where block_bytes is 0. ncclSystemError: no memory. */
ncclResult_t kl_hugepages_create(const struct kl_hugepages_system *system, struct kl_hugepages **pages);
void kl_hugepages_free(struct kl_hugepages *pages);

/** An operation is about to begin, or several of one launch. */
void kl_hugepages_begin(struct kl_hugepages *pages);

/** It uses all of this memory, in this process or, through the kernel or a mapping, in another. Of more than KL_HUGEPAGES_BLOCKS blocks the first ones count. */
void kl_hugepages_use(struct kl_hugepages *pages, const void *at, size_t bytes);

/** It has ended: a part of its time may be spent on the next ones. */
void kl_hugepages_end(struct kl_hugepages *pages);

#endif
