/* SPDX-License-Identifier: Apache-2.0 */
/**
 * parse.h - values as users write them.
 *
 * Every function is silent: it returns false for text it cannot parse and leaves its output alone; the caller, which
 * knows the meaning of the text, reports it. The whole text must match: no blanks, nothing behind.
 */
#ifndef KL_BASE_PARSE_H
#define KL_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/** "16", "-2", "0x10", "020" (octal). */
bool kl_parse_int(const char *text, int64_t *value);

/**
 * "4096", "0x1000", "4K", "1.5M", "2GB", "64KiB": bytes, at most INT64_MAX. K, M and G (either case) are powers of 1024, with and
 * without B or iB; a decimal fraction of them is rounded to whole bytes.
 */
bool kl_parse_size(const char *text, uint64_t *bytes);

/**
 * "0x10de", "10de": a hexadecimal number, as ids are written. 0 for NULL and for text that does not begin with one;
 * anything after the digits is ignored.
 */
uint64_t kl_parse_hex(const char *text);

/** "1", "on", "0", "off"; either case. */
bool kl_parse_bool(const char *text, bool *value);

/** The index of `text` in `choices`, which ends with NULL; either case. */
bool kl_parse_choice(const char *text, const char *const *choices, int *index);

/**
 * "A,C": a bit per choice, bit i for choices[i] (at most 31 of them); a leading "^" takes the complement; "ALL" is all.
 * An empty element is ignored.
 */
bool kl_parse_list(const char *text, const char *const *choices, uint32_t *bits);

#endif
