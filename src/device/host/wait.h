/* SPDX-License-Identifier: Apache-2.0 */
/**
 * wait.h - how a thread polls memory that other threads write: spin, yield or sleep.
 *
 *      each rank has a core:    spin for KL_WAIT_SPIN_NS  ->  yield for KL_WAIT_YIELD_OWN_NS  ->  sleep
 *      ranks share cores:                                     yield for KL_WAIT_YIELD_NS      ->  sleep
 *
 * A sleep takes 50 microseconds at first, and up to a millisecond. Writers need not wake the thread: publishing is one
 * release store. Sleeps that a descriptor ends: idle.h.
 *
 * Threads: a kl_poll_wait belongs to one thread.
 */
#ifndef KL_DEVICE_HOST_WAIT_H
#define KL_DEVICE_HOST_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_WAIT_SPIN_NS = 500000, KL_WAIT_YIELD_OWN_NS = 12000000, KL_WAIT_YIELD_NS = 2000000 };
enum { KL_WAIT_FIRST_SLEEP_US = 50, KL_WAIT_LONGEST_SLEEP_US = 1000 };

/** Placement of the ranks that wait for each other. */
enum kl_wait_cores { KL_CORES_SHARED, KL_CORES_OWN };

struct kl_poll_wait {
    unsigned polls;    /* since the last progress */
    unsigned spun;     /* polls at the end of spinning; 0: still spinning, or never */
    unsigned sleep_us; /* duration of the next sleep; 0 before the first */
    uint64_t since;    /* when this wait was first timed, ns; 0: not yet */
    bool woken;        /* the last sleep was ended by a descriptor (idle.h) */
};

#define KL_WAIT_START ((struct kl_poll_wait){.polls = 0})

/** A wait that has been long already: its first pause is a sleep. */
#define KL_WAIT_LONG ((struct kl_poll_wait){.sleep_us = KL_WAIT_FIRST_SLEEP_US})

/** Yields and sleeps of this thread so far. The difference of two such counts tells how a wait was spent. */
struct kl_wait_counts {
    uint32_t yields, sleeps;
    const void *thread; /* differs from thread to thread */
};
struct kl_wait_counts kl_wait_counts(void);

/** Count a sleep of this thread by other means (idle.h). */
void kl_wait_slept(void);

/** A poll was unsuccessful: pause. */
void kl_wait_pause(struct kl_poll_wait *wait, enum kl_wait_cores cores);

/** The next sleep is twice as long, up to the longest. */
void kl_wait_lengthen(struct kl_poll_wait *wait);

/** There was progress: the wait is over. */
static inline void kl_wait_reset(struct kl_poll_wait *wait)
{
    *wait = KL_WAIT_START;
}

#endif
