/* SPDX-License-Identifier: Apache-2.0 */
/**
 * wakeup_fd.h - an eventfd as a wake-up: threads poll it, others write it.
 *
 * Threads: any; also signal handlers, and other processes that have the descriptor.
 * Source:  eventfd(2).
 */
#ifndef KL_OS_WAKEUP_FD_H
#define KL_OS_WAKEUP_FD_H

/** Open one (close-on-exec, non-blocking); close(2) frees it. -1 with errno on failure. */
int kl_wakeup_open(void);

/** Make it readable until kl_wakeup_clear. Leaves errno alone. */
void kl_wakeup_signal(int fd);

/** Make it unreadable again: consumes all writes so far. */
void kl_wakeup_clear(int fd);

#endif
