/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pagemap.h - is memory private to this process, so that no other process can write to it? Queried from the kernel by
 * page (/proc/self/pagemap), and cached.
 *
 * Memory may be unmapped, and other memory mapped in its place, so the cache is cleared after a thousand queries.
 *
 * Source:  Linux, Documentation/admin-guide/mm/pagemap.rst: bit 63, the page is present; bit 61, it is of a file or
 *          shared.
 * Threads: one at a time.
 */
#ifndef KL_OS_PAGEMAP_H
#define KL_OS_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_PAGEMAP_KNOWN = 256 }; /* pages, power of two */

struct kl_pagemap {
    unsigned bits; /* offset bits of an address within a page */
    uint32_t asked;
    uintptr_t own[KL_PAGEMAP_KNOWN]; /* private pages, indexed by the lowest bits of their numbers; 0: none */
};

/** With an empty cache. False: the kernel does not report it. */
bool kl_pagemap_init(struct kl_pagemap *map);

/**
 * Are the first and the last page of `bytes` present and private? Some system calls for each page that is not cached.
 */
bool kl_pagemap_is_own(struct kl_pagemap *map, const void *at, size_t bytes);

#endif
