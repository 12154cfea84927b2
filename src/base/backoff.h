/* SPDX-License-Identifier: Apache-2.0 */
/**
 * backoff.h - exponential back-off for attempts that may be useless: after a failure 1, 3, 7, ... opportunities are
 * skipped.
 *
 * Threads: one at a time.
 */
#ifndef KL_BASE_BACKOFF_H
#define KL_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_BACKOFF_SKIPPED_MAX = 63 }; /* most opportunities skipped between two attempts */

struct kl_backoff {
    uint32_t passed, pause; /* opportunities since the last attempt, and how many to skip */
};

/** Called at each opportunity. True: make the attempt, then call kl_backoff_record. */
static inline bool kl_backoff_due(struct kl_backoff *s)
{
    if (s->passed++ < s->pause) return false;
    s->passed = 0;
    return true;
}

static inline void kl_backoff_record(struct kl_backoff *s, bool useful)
{
    if (useful)
        s->pause = 0;
    else if (s->pause < KL_BACKOFF_SKIPPED_MAX)
        s->pause = 2 * s->pause + 1;
}

#endif
