/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cache.h - the sizes of a CPU's caches.
 *
 * Source: sysfs. The C library's sysconf is on some processors the sum of all last-level caches of a package, even if a
 *         CPU uses one of ten.
 */
#ifndef KL_OS_CACHE_H
#define KL_OS_CACHE_H

#include <stddef.h>

struct kl_cache {
    size_t bytes; /* 0: unknown */
    int cpus;     /* that share it; 1 if unknown */
};

enum { KL_CACHE_LAST };

/** The cache of that level, or the last one, of a CPU, which `dir` describes: /sys/devices/system/cpu/cpuN/cache. */
struct kl_cache kl_cache_of(const char *dir, long level);

#endif
