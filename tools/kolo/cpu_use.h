/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cpu_use.h - CPU time that other programs took during a measurement.
 *
 * Units:    seconds of CPU time.
 * Contents: on the CPUs that this process may use, the time of all programs (with kernel and interrupts) and the time that the
 *           hypervisor gave to other machines; and the part of this process and its ended children.
 * Source:   proc(5), /proc/stat; getrusage(2).
 */
#ifndef KOLO_TOOL_CPU_USE_H
#define KOLO_TOOL_CPU_USE_H

#include "base/cpuset.h"

struct kl_cpu_use {
    double all, own;
    bool known; /* false: the system does not report it */
};

/** Until now. */
struct kl_cpu_use kl_cpu_use_now(void);

/** Sum up the times of `cpus` in `text`, the contents of /proc/stat; false: one of them is missing. */
bool kl_cpu_use_parse(const char *text, const struct kl_cpuset *cpus, long ticks_per_second, double *all);

/** Share of `cpus` CPUs that others had for `seconds` on average, from 0 to 1; 0 where it is not known. */
double kl_cpu_use_of_others(const struct kl_cpu_use *begin, const struct kl_cpu_use *end, int cpus, double seconds);

#endif
