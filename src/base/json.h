/* SPDX-License-Identifier: Apache-2.0 */
/**
 * json.h - write JSON to a stream, piece by piece: for files and output that other programs read.
 *
 *     kl_json_open(&j, NULL, '{');
 *     kl_json_uint(&j, "rank", 3);
 *     kl_json_open(&j, "operations", '[');
 *     kl_json_close(&j, ']');
 *     kl_json_close(&j, '}');
 *
 * A key is NULL in arrays and for the document itself. Keys are plain text; values are escaped, and invalid UTF-8 in
 * them becomes U+FFFD. Numbers don't depend on the locale. Members of the two outermost levels begin on lines of their
 * own.
 *
 * Errors: the stream remembers them (ferror).
 * Source: RFC 8259.
 */
#ifndef KL_BASE_JSON_H
#define KL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kl_json {
    FILE *to;
    int depth;
    bool more; /* the next member needs a comma */
};

static inline struct kl_json kl_json_to(FILE *to)
{
    return (struct kl_json){.to = to};
}

/** `bracket`: '{' or '[', and '}' or ']'. */
void kl_json_open(struct kl_json *j, const char *key, char bracket);
void kl_json_close(struct kl_json *j, char bracket);

void kl_json_uint(struct kl_json *j, const char *key, uint64_t value);
void kl_json_int(struct kl_json *j, const char *key, int64_t value);
/** A number given in thousandths, written as 1.234. */
void kl_json_milli(struct kl_json *j, const char *key, uint64_t thousandths);
void kl_json_bool(struct kl_json *j, const char *key, bool value);
void kl_json_null(struct kl_json *j, const char *key);
/** NULL is written as null. */
void kl_json_text(struct kl_json *j, const char *key, const char *text);
/** Written as a string of hex digits: many readers lose precision above 2^53. */
void kl_json_hex(struct kl_json *j, const char *key, uint64_t value);

#endif
