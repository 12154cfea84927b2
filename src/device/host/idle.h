/* SPDX-License-Identifier: Apache-2.0 */
/**
 * idle.h - how a thread without work for milliseconds sleeps: on the descriptors that its work waits for.
 *
 * Before it sleeps it looks at the work twice. In the first look stalled work registers its descriptors (kl_idle_wait_fd),
 * and whether it waits for nothing else (kl_idle_registered); the second finds progress made meanwhile. Later events wake the
 * sleeper at once. Work that also waits for memory is polled in naps of up to a millisecond; if all work waits for
 * descriptors only, a nap lasts 20 milliseconds.
 *
 *      resting + 1  ->  look, arming  ->  look  ->  sleep on descriptors and the wakeup descriptor  ->  resting - 1
 *
 * Invariant:  a descriptor is armed for one wake-up, so that readable data that no work wants does not keep a thread
 *             awake.
 * Memory order: `resting` is raised by a sequentially consistent operation before the looks; a thread that has made or
 *               finished work by such an operation, and then sees no thread resting, is seen by the looks.
 * Threads:    any; a forked child starts over (kl_idle_after_fork).
 */
#ifndef KL_DEVICE_HOST_IDLE_H
#define KL_DEVICE_HOST_IDLE_H

#include "base/atomic.h"
#include "device/host/wait.h"

#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint32_t kl_idle_resting;

/** The longest sleep, ns. Constant, except in tests. */
extern uint64_t kl_idle_longest_ns;

/**
 * Look at the work with `look` (true: progress), and sleep if there is none. As long as `wait` is not past its first
 * pauses (kl_poll_wait.sleep_us), sleep only if all work waits for descriptors only. True: there was progress, and no
 * sleep.
 */
bool kl_idle_rest(struct kl_poll_wait *wait, bool (*look)(void *ctx), void *ctx);

/** Wake resting threads: there is work that they have not looked at. */
void kl_idle_wake(void);

static inline void kl_idle_notify(void)
{
    if (kl_load_seq_cst(&kl_idle_resting)) kl_idle_wake();
}

/* ---- called by stalled work ---- */

/** Is the thread about to sleep? */
bool kl_idle_arming(void);

/** `fd` becomes readable when the work may continue; call again before each sleep. False: it cannot be slept on. */
bool kl_idle_wait_fd(int fd);

/**
 * The work that is being looked at waits only for the descriptors that it has registered, and for calls of
 * kl_idle_notify.
 */
void kl_idle_registered(void);

/**
 * A look at a piece of work has ended without progress; called for each piece, also if another thread looks at it now.
 */
void kl_idle_stalled(void);

/** In a forked child: the parent's descriptors are not its own. */
void kl_idle_after_fork(void);

#endif
