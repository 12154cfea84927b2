/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bulk_copy.h - copies of many bytes, in ways that suit the caches.
 *
 * Non-temporal stores go to memory, not into the caches: for results that would be evicted before they are read. They save reading the lines
 * that are overwritten. Nobody sees them in order until kl_nontemporal_fence, which comes before whatever tells others of them.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_HOST_BULK_COPY_H
#define KL_DEVICE_HOST_BULK_COPY_H

#include <stdbool.h>
#include <stddef.h>

/** As memmove, in pieces where that is faster: C libraries copy megabytes with non-temporal stores, even those that would stay in the caches. */
void kl_copy_bulk(void *to, const void *from, size_t bytes);

/** A whole copy of results, of which others may be told then; `nt`: with non-temporal stores. */
void kl_copy_result(void *to, const void *from, size_t bytes, bool nt);

/** As memcpy, with non-temporal stores on processors that have them. `ahead`: as many bytes, which are read next, are prefetched. NULL: nothing is. */
void kl_copy_nontemporal(void *to, const void *from, size_t bytes, const void *ahead);

void kl_nontemporal_fence(void);

/** Bytes of the last-level cache, as the system tells; a guess where it does not. */
size_t kl_cache_bytes(void);

/** CPUs of the machine. */
int kl_cache_cores(void);

/** Bytes of the caches that the cores of `nranks` ranks of this host have for themselves, together. */
size_t kl_cache_own_bytes(int nranks);

/** Bytes of all caches that they may count on, about: some times their own, but not more than half of the last level, as others use it as well. */
size_t kl_cache_share_bytes(int nranks);

/**
 * Bytes of shared memory that each of `nranks` ranks of this host goes through before it writes the same again. A line that another core has read stays
 * there, and has to be taken from it; what both have dropped comes from the cache they share. On AMD's processors that takes half as long, and the
 * cycle is about twice the cache that a core has for itself; on Intel's it does not, and the cycle is half of it (docs/performance.md). All ranks find the
 * same.
 */
size_t kl_cache_cycle(int nranks);

#endif
