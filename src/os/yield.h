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
 * Yield. The first call requests the shortest time slices (0.1 ms) for this thread, permanently: with the default slice
 * a yield costs milliseconds beside a program that computes. All threads that wait for each other on one core should
 * have equal slices, or those with shorter ones yield to each other dozens of times before another runs. Threads with
 * other scheduling policies, and kernels that refuse, are left as they are.
 */
void kl_yield(void);

#endif
