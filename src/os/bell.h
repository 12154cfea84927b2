/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bell.h - an eventfd as a wake-up: threads poll it, others write it.
 *
 * Threads: any; also signal handlers, and other processes that have the descriptor.
 * Source:  eventfd(2).
 */
#ifndef KL_OS_BELL_H
#define KL_OS_BELL_H

/** Open one (close-on-exec, non-blocking); close(2) frees it. -1 with errno on failure. */
int kl_bell_open(void);

/** Make it readable until kl_bell_hear. Leaves errno alone. */
void kl_bell_ring(int bell);

/** Make it unreadable again: consumes all writes so far. */
void kl_bell_hear(int bell);

#endif
