/* SPDX-License-Identifier: Apache-2.0 */
/**
 * backoff.h - how a thread waits for another that it shares memory with: spin, then yield, then timed sleeps.
 *
 * Nobody has to wake anybody, so publishing stays a single release store. Waking a sleeping thread costs some 20
 * microseconds here, a hand-over by sched_yield 0.7, a line transfer 0.1: so spin first where every rank has a core,
 * yield at once where it has not, and sleep only after the peer has been away for milliseconds; where a descriptor tells, earlier
 * (idle.h).
 *
 * Threads: a kl_backoff belongs to one thread.
 */
#ifndef KL_DEVICE_HOST_BACKOFF_H
#define KL_DEVICE_HOST_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/** Polls before the first yield where every rank has a core of its own: about half a millisecond, in which a peer that runs answers. Who yields
 * to another program may give away a time slice of some milliseconds. */
#define KL_SPIN_POLLS 5000

struct kl_backoff {
    unsigned polls;    /* since the last progress; */
    unsigned spin;     /* so many before the first yield */
    unsigned sleep_us; /* of the next sleep; 0 before the first */
    uint64_t since;    /* when yielding began, ns; 0 before */
    bool woken;        /* the last sleep was ended by a descriptor (idle.h) */
};

#define KL_BACKOFF_START ((struct kl_backoff){.polls = 0})

/**
 * Pass some time; `spin` polls are free of system calls, counted since the last reset. Fewer where spinning has been of no use to this thread lately, as
 * it shares a core with the one it waits for.
 */
void kl_backoff_pause(struct kl_backoff *backoff, unsigned spin);

/** The next sleep is longer, up to a millisecond. */
void kl_backoff_grow(struct kl_backoff *backoff);

/** There was progress: start over. */
static inline void kl_backoff_reset(struct kl_backoff *backoff)
{
    *backoff = KL_BACKOFF_START;
}

#endif
