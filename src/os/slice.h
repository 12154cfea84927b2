/* SPDX-License-Identifier: Apache-2.0 */
/**
 * slice.h - how long a thread runs before others have their turn.
 *
 * Threads:  about the calling thread.
 * Source:   sched_setattr(2), sched_runtime of ordinary threads: Linux 6.12 and later; before, it changes nothing.
 */
#ifndef KL_OS_SLICE_H
#define KL_OS_SLICE_H

/**
 * Ask for the shortest time slice there is, 0.1 ms. Who yields gives the rest of a slice away, and comes back when the others have had
 * as much: beside a program that computes, that is milliseconds a time. A thread of another policy than the ordinary ones, and one
 * whose system refuses, keeps what it has.
 */
void kl_slice_shorten(void);

#endif
