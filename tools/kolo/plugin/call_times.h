/* SPDX-License-Identifier: Apache-2.0 */
/** call_times.h - how long calls of a kind took: counts by duration, eight classes for each power of two of nanoseconds. */
#ifndef KOLO_TOOL_PLUGIN_CALL_TIMES_H
#define KOLO_TOOL_PLUGIN_CALL_TIMES_H

#include <stdint.h>

enum { KL_CALL_CLASSES = 320 };

struct kl_call_times {
    uint64_t calls, sum_ns, most_ns;
    uint32_t count[KL_CALL_CLASSES];
};

void kl_call_times_add(struct kl_call_times *times, uint64_t ns);

/** The time, in ns, that a share of the calls (0 to 1) did not exceed: at most an eighth too large. 0: there was no call. */
uint64_t kl_call_times_quantile(const struct kl_call_times *times, double share);

#endif
