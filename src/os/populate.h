/* SPDX-License-Identifier: Apache-2.0 */
/**
 * populate.h - page tables filled before memory is used: one system call instead of a page fault for each page.
 *
 * Threads:  any.
 * Source:   madvise(2), MADV_POPULATE_WRITE: Linux 5.14. Elsewhere pages come as they are touched.
 */
#ifndef KL_OS_POPULATE_H
#define KL_OS_POPULATE_H

#include <stddef.h>

/** Makes the whole pages in [at, at + bytes) present and writable, as far as the system can. Contents stay. Blocks while pages are zeroed, some 0.5 us each. */
void kl_populate(void *at, size_t bytes);

#endif
