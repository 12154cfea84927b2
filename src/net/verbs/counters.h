/* SPDX-License-Identifier: Apache-2.0 */
/**
 * counters.h - the error counters of a port in sysfs, and which of them have moved.
 *
 * Threads:  any.
 */
#ifndef KL_NET_VERBS_COUNTERS_H
#define KL_NET_VERBS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

enum { KL_VERBS_COUNTERS = 20 };

struct kl_verbs_counters {
    uint64_t value[KL_VERBS_COUNTERS]; /* UINT64_MAX: it does not exist */
};

/** Read them; `port` is the port's directory in sysfs. */
void kl_verbs_counters_read(const char *port, struct kl_verbs_counters *counters);

/** Those that differ, "out_of_sequence +3, link_downed +1", or "". Returns `text`. */
const char *kl_verbs_counters_moved(const struct kl_verbs_counters *before, const struct kl_verbs_counters *now,
                                    char *text, size_t bytes);

#endif
