/* SPDX-License-Identifier: Apache-2.0 */
/**
 * seldom.h - exponential back-off for attempts that may be useless: after a failure 1, 3, 7, ... opportunities are
 * skipped.
 *
 * Threads: one at a time.
 */
#ifndef KL_BASE_SELDOM_H
#define KL_BASE_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_SELDOM_MOST = 63 }; /* most opportunities skipped between two attempts */

struct kl_seldom {
    uint32_t passed, pause; /* opportunities since the last attempt, and how many to skip */
};

/** Called at each opportunity. True: make the attempt, then call kl_seldom_tried. */
static inline bool kl_seldom_due(struct kl_seldom *s)
{
    if (s->passed++ < s->pause) return false;
    s->passed = 0;
    return true;
}

static inline void kl_seldom_tried(struct kl_seldom *s, bool useful)
{
    if (useful)
        s->pause = 0;
    else if (s->pause < KL_SELDOM_MOST)
        s->pause = 2 * s->pause + 1;
}

#endif
