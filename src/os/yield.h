/* SPDX-License-Identifier: Apache-2.0 */
/**
 * yield.h - let the other threads of this core run.
 *
 * Threads:  about the calling thread.
 * Source:   sched_yield(2); sched_setattr(2), sched_runtime of ordinary threads: Linux 6.12 and later.
 */
#ifndef KL_OS_YIELD_H
#define KL_OS_YIELD_H

/**
 * Yield. Who yields gives the rest of a time slice away, and comes back when the others have had as much. So the first call asks for the shortest
 * slices there are (0.1 ms), for this thread and for good: beside a program that computes, a yield costs milliseconds otherwise; and threads that
 * wait for each other on one core must all have slices alike, or those with shorter ones yield to each other dozens of times before another has its turn.
 * A thread of another policy than the ordinary ones, and one whose system refuses, keeps what it has.
 */
void kl_yield(void);

#endif
