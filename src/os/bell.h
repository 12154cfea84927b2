/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bell.h - an eventfd: whoever polls it wakes when somebody rings.
 *
 * Threads: any; other processes that have the descriptor, and signal handlers, may ring too.
 * Source:  eventfd(2).
 */
#ifndef KL_OS_BELL_H
#define KL_OS_BELL_H

/** A new one, which close(2) ends; close-on-exec, and nobody waits in it. -1 with errno: there is none to be had. */
int kl_bell_open(void);

/** Make it readable until it is heard. Leaves errno alone. */
void kl_bell_ring(int bell);

/** Take all rings so far. */
void kl_bell_hear(int bell);

#endif
