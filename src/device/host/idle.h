/* SPDX-License-Identifier: Apache-2.0 */
/**
 * idle.h - how a thread sleeps that has found nothing to do for milliseconds: on the descriptors of what its work waits for.
 *
 * Before it sleeps it takes two more looks at the work. In the first, whoever stalls says on which descriptors it waits
 * (kl_idle_on), and whether on nothing else (kl_idle_told). The second finds what came in between. What comes later wakes
 * the sleeper at once. Work that also waits for memory, which nobody can sleep on, is looked at in naps of up to a
 * millisecond as well; where all have told, a nap lasts 20 milliseconds.
 *
 *      resting + 1  ->  look, arming  ->  look  ->  sleep on descriptors and bell  ->  resting - 1
 *
 * Invariant:  a descriptor is armed for one wake-up: what is readable and of no interest to anybody does not keep a thread awake.
 * Memory order: `resting` is raised by a sequentially consistent operation before the looks; whoever has made work, or
 *               finished it, by such an operation and then sees nobody resting, is seen by the looks.
 * Threads:    any; a forked child begins anew (kl_idle_forget).
 */
#ifndef KL_DEVICE_HOST_IDLE_H
#define KL_DEVICE_HOST_IDLE_H

#include "base/atomic.h"
#include "device/host/wait.h"

#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint32_t kl_idle_resting;

/** The longest sleep, ns. Constant, but for tests. */
extern uint64_t kl_idle_longest_ns;

/**
 * Look at the work by `look` (true: something moved), and sleep if nothing moves. As long as `wait` is not past its first pauses
 * (kl_poll_wait.sleep_us), only if all have told. True: something moved, and nobody slept.
 */
bool kl_idle_rest(struct kl_poll_wait *wait, bool (*look)(void *ctx), void *ctx);

/** Wake those who rest: there is work that they have not looked at. */
void kl_idle_wake(void);

static inline void kl_idle_ring(void)
{
    if (kl_load_seq_cst(&kl_idle_resting)) kl_idle_wake();
}

/* ---- for work that stalls ---- */

/** Is the thread about to sleep? */
bool kl_idle_arming(void);

/** `fd` becomes readable when the work may go on; again before each sleep. False: nobody can sleep on it. */
bool kl_idle_on(int fd);

/** The work that is looked at waits for nothing but the descriptors it has named, and such as call kl_idle_ring. */
void kl_idle_told(void);

/** A look at work has ended without progress; called for each piece of work, also such as somebody else looks at now. */
void kl_idle_stalled(void);

/** In a forked child: its parent's descriptors are not its own. */
void kl_idle_forget(void);

#endif
