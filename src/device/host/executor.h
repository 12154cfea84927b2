/* SPDX-License-Identifier: Apache-2.0 */
/**
 * executor.h - background thread that keeps calls asynchronous: progress for operations that no thread waits for.
 *
 * Started by the first push to any stream. It looks at the streams after 100 microseconds, and while other threads run
 * all work ever later, up to every 0.8 milliseconds; less often where ranks share CPUs. It takes over a stream if the
 * same piece of work was its first at the previous look, and no thread waits for it. Once it runs one stream it runs
 * all pending work, until none is left. When nothing was pushed for 10 milliseconds, and threads wait for all work, it
 * sleeps on a futex, until a push or a thread that leaves work unfinished wakes it.
 *
 * Threads: kl_executor_notify from any. A forked child starts its own.
 */
#ifndef KL_DEVICE_HOST_EXECUTOR_H
#define KL_DEVICE_HOST_EXECUTOR_H

#include "base/atomic.h"

#include <stdint.h>

/** RESTING: all its work waits for external events (idle.h). */
enum kl_executor_state { KL_EXECUTOR_ABSENT, KL_EXECUTOR_AWAKE, KL_EXECUTOR_ASLEEP, KL_EXECUTOR_RESTING };

extern _Atomic uint32_t kl_executor_state; /* futex word */

/** Start it, or wake it up. */
void kl_executor_wake(void);

/**
 * Number of ranks that share a CPU here: the executors of all their processes together would keep it busy by looking.
 */
void kl_executor_share(unsigned ranks_per_cpu);

/** In a forked child: the parent's executor does not exist here. */
void kl_executor_forget(void);

/** Call after publishing work, by a sequentially consistent operation, so that this load comes after it. */
static inline void kl_executor_notify(void)
{
    if (kl_load_seq_cst(&kl_executor_state) != KL_EXECUTOR_AWAKE) kl_executor_wake();
}

#endif
