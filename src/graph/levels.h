/* SPDX-License-Identifier: Apache-2.0 */
/**
 * levels.h - bandwidths as small numbers, so that a reservation on a link is one table look-up.
 *
 * A link with bandwidth `left` has (left - need) left after a reservation, in single precision, rounded to three decimals;
 * it refuses if left < need. Results depend on every bit of this, and releasing does not always restore the old value. But
 * only few values occur, and few needs within a round. So each value is a *level*: the number of a row of a table. Each
 * need of the round is a column, which holds the level after the reservation:
 *
 *                       take 20          give 20
 *     level of 240      level of 220     level of 260
 *     level of 220      level of 200     level of 240
 *     level of 10       refused          level of 30
 *
 * An entry is computed at its first use. Levels are numbered in steps of the row length, so that level + column is
 * the place of an entry.
 *
 * Threads: one.
 * Source:  the graph specification, 5.1.
 */
#ifndef KL_GRAPH_LEVELS_H
#define KL_GRAPH_LEVELS_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KL_LEVEL_REFUSED = -1,
    KL_LEVEL_UNKNOWN = -2,
    KL_LEVEL_STEP = 32,
    KL_LEVEL_NEEDS = 31, /* columns for needs */
    KL_LEVEL_WHOLE = 31  /* this column is the value without decimals */
};

struct kl_levels {
    int32_t *next;              /* rows of KL_LEVEL_STEP entries */
    float *value;               /* by level / KL_LEVEL_STEP: GB/s */
    float need[KL_LEVEL_NEEDS]; /* by column; negative gives back */
    int32_t *slot;              /* hash table of levels, -1 empty */
    int32_t *filled;            /* entries that are known */
    int n, max, nslots, nfilled, max_filled;
    bool nomem;
};

void kl_levels_fini(struct kl_levels *levels);

/** The level of a value. Once memory ran out (`nomem`), any level. */
int kl_level_of(struct kl_levels *levels, float value);

/** Forget the columns, before their needs change. */
void kl_levels_begin(struct kl_levels *levels);

/** Compute one entry: a level, or KL_LEVEL_REFUSED. */
int kl_levels_fill(struct kl_levels *levels, int entry);

/** The level after the reservation of a column's need. */
static inline int kl_level_next(struct kl_levels *levels, int level, int column)
{
    int to = levels->next[level + column];

    return to != KL_LEVEL_UNKNOWN ? to : kl_levels_fill(levels, level + column);
}

/** A bandwidth without its decimals; absurdly large ones become 2^30. */
static inline int kl_whole(float bw)
{
    return bw < 1073741824.0f ? (int)bw : 1 << 30;
}

static inline float kl_level_value(const struct kl_levels *levels, int level)
{
    return levels->value[level / KL_LEVEL_STEP];
}

#endif
