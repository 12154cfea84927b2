/* SPDX-License-Identifier: Apache-2.0 */
/**
 * seldom.h - what may be of no use is tried the less often the longer it has been: after 1, 3, 7, ... chances that are passed by.
 *
 * Threads: one at a time.
 */
#ifndef KL_BASE_SELDOM_H
#define KL_BASE_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_SELDOM_MOST = 63 }; /* chances passed by between two tries */

struct kl_seldom {
    uint32_t passed, pause; /* chances since the last try, and how many there are to be */
};

/** There is a chance: is it taken? Then kl_seldom_tried follows. */
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
