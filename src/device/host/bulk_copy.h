/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bulk_copy.h - cache-aware copies of many bytes.
 *
 * Non-temporal stores go to memory, not into the caches: for results that would be evicted before they are read. They
 * save reading the overwritten lines. They are weakly ordered: call kl_nontemporal_fence before publishing the data.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_HOST_BULK_COPY_H
#define KL_DEVICE_HOST_BULK_COPY_H

#include <stdbool.h>
#include <stddef.h>

/**
 * As memmove, in pieces where that is faster: C libraries copy megabytes with non-temporal stores, even if the data
 * would stay in the caches.
 */
void kl_copy_bulk(void *to, const void *from, size_t bytes);

/** A whole copy of results, which others may be told of then; `nt`: with non-temporal stores. */
void kl_copy_result(void *to, const void *from, size_t bytes, bool nt);

/**
 * As memcpy, with non-temporal stores on processors that have them. `ahead`: as many bytes to prefetch, because they
 * are read next. NULL: none.
 */
void kl_copy_nontemporal(void *to, const void *from, size_t bytes, const void *ahead);

void kl_nontemporal_fence(void);

/** Bytes of the last-level cache, as reported by the OS; a guess if it is not. */
size_t kl_cache_bytes(void);

/** CPUs of the machine. */
int kl_cache_cores(void);

/** Bytes of the private caches of the cores of `nranks` ranks of this host, together. */
size_t kl_cache_own_bytes(int nranks);

/**
 * Bytes of shared memory that each of `nranks` ranks of this host goes through before it writes the same again. A line that another core has read stays
 * there, and has to be taken from it; what both have dropped comes from the cache they share. On AMD's processors that takes half as long, and the
 * cycle is about twice the cache that a core has for itself; on Intel's it does not, and the cycle is half of it (docs/decisions/0016-slot-cycles.md). All ranks find the
 * same.
 */
size_t kl_cache_cycle(int nranks);

#endif
