/* SPDX-License-Identifier: Apache-2.0 */
/**
 * levels.h - bandwidths as small numbers, so that taking from a link is one table look-up.
 *
 * What is left of a link after taking `need` is (left - need) in single precision, rounded to three decimals, if left is
 * at least `need`. Results depend on every bit of that, and giving back does not always restore what was there. But few
 * different values ever occur. So each value gets a number, its *level*, and for each need there is a column: the level
 * that every level leads to. A column is filled as it is asked; the arithmetic happens once per level and need.
 *
 *     column of need 20:      level of 240 -> level of 220        taking
 *     column of need -20:     level of 220 -> level of 240        giving back
 *
 * Threads: one.
 * Source:  the graph specification, 5.1.
 */
#ifndef KL_GRAPH_LEVELS_H
#define KL_GRAPH_LEVELS_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_LEVEL_REFUSED = -1, KL_LEVEL_UNKNOWN = -2 };

struct kl_column {
    float need;
    int32_t *to; /* by level */
};

struct kl_levels {
    float *value; /* by level */
    int n, max;
    struct kl_column **column;
    int ncolumns, max_columns;
    int32_t *slot; /* hash table: level, -1 empty */
    int nslots;
    bool nomem;
};

void kl_levels_fini(struct kl_levels *levels);

/** The level of a value. After running out of memory (`nomem`) any number below n. */
int kl_level_of(struct kl_levels *levels, float value);

/** The column for a need; it stays where it is. NULL when memory is short. */
struct kl_column *kl_levels_column(struct kl_levels *levels, float need);

/** Fill one entry of a column: the new level or KL_LEVEL_REFUSED. */
int kl_levels_fill(struct kl_levels *levels, struct kl_column *column, int level);

/** The level after taking the column's need, or KL_LEVEL_REFUSED. */
static inline int kl_level_take(struct kl_levels *levels, struct kl_column *column, int level)
{
    int to = column->to[level];

    return to != KL_LEVEL_UNKNOWN ? to : kl_levels_fill(levels, column, level);
}

#endif
