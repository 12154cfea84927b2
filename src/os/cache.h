/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cache.h - how large the caches of a CPU are.
 *
 * Source: sysfs. What the C library tells (sysconf) is on some processors the sum of all last-level caches of a package, even if a CPU uses one of ten.
 */
#ifndef KL_OS_CACHE_H
#define KL_OS_CACHE_H

#include <stddef.h>

/** Bytes of the last-level cache of a CPU, which `dir` describes: /sys/devices/system/cpu/cpuN/cache. 0: it does not say. */
size_t kl_cache_last_bytes(const char *dir);

#endif
