/* SPDX-License-Identifier: Apache-2.0 */
/** text.h - text that grows. Where there is no memory the program ends: a compiler has nothing else to do then. */
#ifndef KL_NVCC_TEXT_H
#define KL_NVCC_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/** Always ends with a zero that does not count, once something was added; {0} is empty. */
struct text {
    char *at;
    size_t bytes, room;
};

void text_add(struct text *t, const char *what, size_t bytes);
void text_put(struct text *t, const char *what);
void text_print(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_drop(struct text *t);

/** As malloc, realloc and the like, but never NULL. */
void *must_have(size_t bytes);
void *must_grow(void *old, size_t bytes);
char *must_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *must_copy(const char *what, size_t bytes);

#endif
