/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ticks.h - time by the processor's cycle counter, for the path of an operation: one instruction, no system call, about
 * 20 cycles.
 *
 * Where the counter stops or changes its speed, the system's coarse clock replaces it: as cheap, with a resolution of a
 * few milliseconds. Readings are converted to nanoseconds of kl_now_ns later, with a scale.
 *
 * Threads: any, after kl_ticks_begin.
 * Source:  Intel's manual, 18.17.1 (invariant TSC); Arm's, D13 (the generic timer); clock_gettime(2).
 */
#ifndef KL_BASE_TICKS_H
#define KL_BASE_TICKS_H

#include "base/clock.h"

extern bool kl_ticks_counted; /* the processor's counter is used; constant after kl_ticks_begin */

/** Detect the counter, once per process. Before the first kl_ticks. */
void kl_ticks_begin(void);

static inline uint64_t kl_ticks_coarse(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t kl_ticks(void)
{
    if (__builtin_expect(!kl_ticks_counted, 0)) return kl_ticks_coarse();
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return kl_ticks_coarse();
#endif
}

/** The conversion from ticks to nanoseconds, as precise as it is known now. */
struct kl_ticks_scale {
    uint64_t ticks, ns; /* read at the same moment */
    double ns_per_tick;
};

/** Computed from the time since kl_ticks_begin: valid for every tick between then and now, to about 100 ns. */
struct kl_ticks_scale kl_ticks_scale(void);

uint64_t kl_ticks_ns(const struct kl_ticks_scale *scale, uint64_t ticks);

#endif
