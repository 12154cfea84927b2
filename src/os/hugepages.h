/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hugepages.h - collapse memory that large operations use repeatedly into huge pages.
 *
 * The kernel pins every page that it copies between processes, and a CPU walks page tables for pages that left its TLB.
 * With pages of 2 MiB two processes that read each other's memory take 0.9 times as long for 2 MiB, 0.83 for 8 MiB,
 * 0.67 for 32 MiB. Collapsing a block takes 0.5 ms, or much longer in some virtual machines and beside programs that
 * compute. So memory that is used once is left alone, and blocks that are used again are collapsed one by one, in at
 * most a tenth of the time of the operations that used such memory.
 *
 * Contents and addresses stay; threads that access the block meanwhile wait. Only blocks that lie in a buffer as a
 * whole are collapsed. Where that is not possible (not host memory, pinned, no free huge page), pages stay as they are.
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
    KL_HUGEPAGES_BLOCKS = 4096,     /* tracked at a time: 8 GiB */
    KL_HUGEPAGES_SHARE = 10,        /* divisor: the part of the operations' time that may be spent on collapsing */
    KL_HUGEPAGES_EXPECTED_US = 500, /* time of a block, before the first was collapsed */
    /* a block that takes longer counts as failed: the kernel had to compact memory for it */
    KL_HUGEPAGES_SLOW_MS = 20,
    KL_HUGEPAGES_FAILURES = 32, /* consecutive failures after which collapsing ends */
};

/** The functions of the system; tests simulate them. */
struct kl_hugepages_system {
    size_t block_bytes;                       /* of a huge page, a power of two */
    bool (*collapse)(void *at, size_t bytes); /* collapse the pages of a block; true: it is one huge page now */
    uint64_t (*now_ns)(void);
    /* CPU time of this thread: the cost of a block, without other threads' time on the core */
    uint64_t (*cpu_ns)(void);
};

struct kl_hugepages {
    struct kl_hugepages_system system;
    int64_t credit_ns;   /* that may be spent on blocks; a block that takes longer than expected overdraws it */
    int64_t expected_ns; /* time of the next block, averaged over earlier ones */
    int64_t spent_ns;    /* spent on blocks during the current operation */
    uint64_t began_ns;   /* when the current operation began to use memory */
    size_t bytes;        /* memory that the current operation uses */
    unsigned failures;
    uint64_t blocks[KL_HUGEPAGES_BLOCKS]; /* block number, and in the lowest 8 bits how often it was used */
};

/**
 * The functions of this system; block_bytes is 0 if it has no huge pages for memory in use, or its administrator
 * disabled them. `dir`: /sys/kernel/mm/transparent_hugepage.
 */
struct kl_hugepages_system kl_hugepages_system_of(const char *dir);

/** NULL if block_bytes is 0. ncclSystemError: no memory. */
ncclResult_t kl_hugepages_create(const struct kl_hugepages_system *system, struct kl_hugepages **pages);
void kl_hugepages_free(struct kl_hugepages *pages);

/** Call before an operation, or before several of one launch. */
void kl_hugepages_begin(struct kl_hugepages *pages);

/**
 * The operation uses all of this memory, in this process or, through the kernel or a mapping, in another. Of more than
 * KL_HUGEPAGES_BLOCKS blocks only the first ones are tracked.
 */
void kl_hugepages_use(struct kl_hugepages *pages, const void *at, size_t bytes);

/** Call after the operation: credits a part of its time. */
void kl_hugepages_end(struct kl_hugepages *pages);

#endif
