/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_data.h - data to send and expected results, so that every element of every result can be checked.
 *
 * An element is taken from a table of KL_DATA_PERIOD (a prime) values per rank, in blocks of KL_DATA_BLOCK elements, each of
 * which starts at another place of the table. So neither shifted nor swapped pieces look right, while filling and
 * checking are copies and comparisons at the speed of memory. The place depends on the element's index and a seed
 * that all ranks share, not on the rank.
 *
 * Any order of reduction gives the exact result, because no partial result is ever rounded:
 *   sum   integers: anything, wrapping. Floats: small integers of both signs with magnitudes that add up to at most the
 *         type's largest exact count (e5m2 8, e4m3 16, bf16 256, half 2048); with more ranks than that, only so many
 *         contribute to an element, others each time.
 *   prod  integers: odd numbers, wrapping. Floats: 1, 2 and 1/2, never out of range.
 *   min, max  one rank, another for each element, has the extreme.
 *   avg   integers: the exact mean, rounded toward zero. Floats: exact where 1/nranks is; else within a few ulp.
 * Each contribution changes its result, so a missing rank shows.
 *
 * Threads: tables are constant once built.
 */
#ifndef KOLO_TOOL_PERF_DATA_H
#define KOLO_TOOL_PERF_DATA_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>

enum { KL_DATA_PERIOD = 4099, KL_DATA_BLOCK = 1024, KL_DATA_TABLE = KL_DATA_PERIOD + KL_DATA_BLOCK };

struct kl_data_table {
    ncclDataType_t type;
    unsigned char *element; /* KL_DATA_TABLE elements */
    int64_t *low, *high;    /* by kl_value_order: the accepted range; NULL: `element` exactly */
};

/** The contribution of `rank` of `nranks` to a reduction. -1: out of memory; also for the functions below. */
int kl_data_contribution(struct kl_data_table *table, ncclDataType_t type, ncclRedOp_t op, int nranks, int rank);

/** The result of the reduction over all ranks. */
int kl_data_reduced(struct kl_data_table *table, ncclDataType_t type, ncclRedOp_t op, int nranks);

/** The data of `rank` for operations without arithmetic: any bits. */
int kl_data_moved(struct kl_data_table *table, ncclDataType_t type, int rank);

/** Also for a zeroed table. */
void kl_data_free(struct kl_data_table *table);

/** Write elements [first, first + count) to `to`, which needs no alignment. */
void kl_data_fill(const struct kl_data_table *table, uint64_t seed, size_t first, size_t count, void *to);

/** The first element found wrong. */
struct kl_data_wrong {
    size_t index; /* in `got` */
    char expected[40], got[40];
};

/** How many of `count` elements at `got` are not elements [first, first + count); `wrong` is set if any. */
size_t kl_data_check(const struct kl_data_table *table, uint64_t seed, size_t first, size_t count, const void *got,
                     struct kl_data_wrong *wrong);

#endif
