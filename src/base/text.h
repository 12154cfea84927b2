/* SPDX-License-Identifier: Apache-2.0 */
/**
 * text.h - build a text piece by piece in memory of fixed size.
 *
 * The text is always zero-terminated. Text that does not fit is dropped and `cut` is set.
 */
#ifndef KL_BASE_TEXT_H
#define KL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_text {
    char *start;
    size_t capacity; /* bytes at `start`, the final zero included; at least 1 */
    size_t length;   /* without the zero */
    bool cut;
};

/** An empty text over `buffer`. */
static inline struct kl_text kl_text_in(char *buffer, size_t capacity)
{
    buffer[0] = 0;
    return (struct kl_text){.start = buffer, .capacity = capacity};
}

/** Append as printf does. */
void kl_text_add(struct kl_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_text_vadd(struct kl_text *text, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/** Append a size in the largest unit that is a whole number of: "64 KiB", "1000 B". */
void kl_text_add_size(struct kl_text *text, int64_t bytes);

/** Append a time in the unit that suits it: "28.8 us", "1.27 ms", "2.05 s". */
void kl_text_add_time(struct kl_text *text, double us);

/** The name of an input file in messages: "-" is standard input. */
const char *kl_text_input(const char *path);

/** Plural ending of a noun for `n`: "s", or "" for one. */
static inline const char *kl_plural(long long n)
{
    return n == 1 ? "" : "s";
}

#endif
