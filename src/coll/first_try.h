/* SPDX-License-Identifier: Apache-2.0 */
/**
 * first_try.h - when an algorithm that the ranks may decline is tried before the one that was chosen.
 *
 * Ranks that have declined would mostly decline again, and asking them costs a turn: they are asked more and more seldom. All count the same
 * operations and have the same answers, so that all ask alike. One that is carried out makes an end to the pauses.
 */
#ifndef KL_COLL_FIRST_TRY_H
#define KL_COLL_FIRST_TRY_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_FIRST_TRY_PAUSE = 255 }; /* operations, at most */

struct kl_first_try {
    bool declined;   /* for the operation under way */
    uint32_t passed; /* operations for which nobody was asked, */
    uint32_t pause;  /* and how many of them there are to be */
};

/** Is it tried for the operation that begins, or is under way and has not begun to be carried out? */
static inline bool kl_first_try_due(const struct kl_first_try *f)
{
    return !f->declined && f->passed >= f->pause;
}

/** Is it certainly not tried for the one that comes `later` behind the one under way? */
static inline bool kl_first_try_passes(const struct kl_first_try *f, uint32_t later)
{
    return f->passed + later < f->pause;
}

static inline void kl_first_try_declined(struct kl_first_try *f)
{
    f->declined = true;
    f->passed = 0;
    f->pause = f->pause < KL_FIRST_TRY_PAUSE / 2 ? 2 * f->pause + 1 : KL_FIRST_TRY_PAUSE;
}

/** An operation for which it might have been tried is complete: `tried` carried it out, or another algorithm. */
static inline void kl_first_try_ended(struct kl_first_try *f, bool tried)
{
    if (tried)
        f->pause = f->passed = 0;
    else if (!f->declined)
        f->passed++;
    f->declined = false;
}

#endif
