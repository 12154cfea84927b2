/* SPDX-License-Identifier: Apache-2.0 */
/**
 * past_cache.h - copies whose stores go to memory, not into the caches: for results that would be thrown out of them before they are read.
 * They save reading the lines that are overwritten.
 *
 * Memory order: nobody sees such stores in order until kl_past_cache_fence, which comes before whatever tells others of them.
 */
#ifndef KL_DEVICE_HOST_PAST_CACHE_H
#define KL_DEVICE_HOST_PAST_CACHE_H

#include <stddef.h>

/** As memcpy; on processors without such stores it is. `ahead`: so many bytes that are read next are fetched on the way. NULL: nothing is. */
void kl_copy_past_cache(void *to, const void *from, size_t bytes, const void *ahead);

void kl_past_cache_fence(void);

/** As memmove, in pieces where that is faster: C libraries copy megabytes past the caches, even those that would stay there. */
void kl_copy_large(void *to, const void *from, size_t bytes);

/** Bytes of the last cache, as the system tells; a guess where it does not. */
size_t kl_cache_bytes(void);

#endif
