/* SPDX-License-Identifier: Apache-2.0 */
/**
 * clock.h - monotonic time in nanoseconds, and deadlines as points on that clock.
 *
 * A deadline is a uint64_t; KL_NO_DEADLINE never passes. Functions that wait take a deadline, not a duration, so that
 * several waits in a row share one budget.
 */
#ifndef KL_BASE_CLOCK_H
#define KL_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define KL_NO_DEADLINE UINT64_MAX

static inline uint64_t kl_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/**
 * As kl_now_ns, but with the resolution of the kernel's tick, some milliseconds. Takes a quarter of the time, and does
 * not wait for earlier loads.
 */
static inline uint64_t kl_now_coarse_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t kl_deadline_in_ms(uint64_t ms)
{
    return kl_now_ns() + ms * 1000000u;
}

static inline bool kl_deadline_passed(uint64_t deadline)
{
    return deadline != KL_NO_DEADLINE && kl_now_ns() >= deadline;
}

/** Time left until the deadline, rounded up to whole milliseconds, at most `cap`; for poll(2). */
static inline int kl_deadline_left_ms(uint64_t deadline, int cap)
{
    uint64_t now = kl_now_ns();

    if (deadline == KL_NO_DEADLINE) return cap;
    if (now >= deadline) return 0;
    uint64_t left = (deadline - now + 999999u) / 1000000u;
    return left < (uint64_t)cap ? (int)left : cap;
}

#endif
