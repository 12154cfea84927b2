/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must_grow(void *old, size_t bytes)
{
    void *p = realloc(old, bytes ? bytes : 1);

    if (p) return p;
    fputs("kolo-nvcc: out of memory\n", stderr);
    exit(1);
}

void *must_have(size_t bytes)
{
    void *p = must_grow(NULL, bytes);

    memset(p, 0, bytes);
    return p;
}

char *must_copy(const char *what, size_t bytes)
{
    char *copy = must_grow(NULL, bytes + 1);

    memcpy(copy, what, bytes);
    copy[bytes] = 0;
    return copy;
}

static char *print(const char *format, va_list args)
{
    va_list again;
    char *s;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) n = 0;
    s = must_have((size_t)n + 1);
    (void)vsnprintf(s, (size_t)n + 1, format, args);
    return s;
}

char *must_print(const char *format, ...)
{
    va_list args;
    char *s;

    va_start(args, format);
    s = print(format, args);
    va_end(args);
    return s;
}

void text_add(struct text *t, const char *what, size_t bytes)
{
    if (t->bytes + bytes + 1 > t->room) {
        t->room = 2 * (t->bytes + bytes + 1);
        t->at = must_grow(t->at, t->room);
    }
    if (bytes) memcpy(t->at + t->bytes, what, bytes);
    t->bytes += bytes;
    t->at[t->bytes] = 0;
}

void text_put(struct text *t, const char *what)
{
    text_add(t, what, strlen(what));
}

void text_print(struct text *t, const char *format, ...)
{
    va_list args;
    char *s;

    va_start(args, format);
    s = print(format, args);
    va_end(args);
    text_put(t, s);
    free(s);
}

void text_drop(struct text *t)
{
    free(t->at);
    *t = (struct text){0};
}
