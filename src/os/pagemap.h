/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pagemap.h - is memory this process's alone, so that nobody else can write there? Asked of the kernel by page (/proc/self/pagemap), and remembered.
 *
 * Memory may be unmapped, and other memory be mapped in its place: what is remembered is asked again after a thousand questions.
 *
 * Source:  Linux, Documentation/admin-guide/mm/pagemap.rst: bit 63, the page is present; bit 61, it is of a file or shared.
 * Threads: one at a time.
 */
#ifndef KL_OS_PAGEMAP_H
#define KL_OS_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_PAGEMAP_KNOWN = 256 }; /* pages, power of two */

struct kl_pagemap {
    unsigned bits; /* of an address within a page */
    uint32_t asked;
    uintptr_t
        own[KL_PAGEMAP_KNOWN]; /* pages that are this process's alone, by the lowest bits of their numbers; 0: none */
};

/** Nothing is known yet. False: the kernel does not tell. */
bool kl_pagemap_init(struct kl_pagemap *map);

/** Do the pages of the first and of the last of `bytes` exist, and nobody else has them? Some system calls for each that is not known. */
bool kl_pagemap_is_own(struct kl_pagemap *map, const void *at, size_t bytes);

#endif
