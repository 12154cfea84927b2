/* SPDX-License-Identifier: Apache-2.0 */
/** ranges.h - a set of ranks as text: "3, 5-7, 9". */
#ifndef KL_BOOTSTRAP_RANGES_H
#define KL_BOOTSTRAP_RANGES_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Write the ranks 0 to n-1 for which `member` returns true. A text that is too long is cut and ends in "...". `room` is
 * at least 64. Returns the number of ranks.
 */
int kl_ranges_format(int n, bool (*member)(const void *ctx, int rank), const void *ctx, char *text, size_t room);

#endif
