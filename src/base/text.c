/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdio.h>

void kl_text_vadd(struct kl_text *text, const char *fmt, va_list args)
{
    size_t room = text->capacity - text->length;
    int n = vsnprintf(text->start + text->length, room, fmt, args);

    if (n < 0) return; /* an encoding error: nothing usable was written */
    text->cut |= (size_t)n >= room;
    text->length += (size_t)n < room ? (size_t)n : room - 1;
}

void kl_text_add(struct kl_text *text, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    kl_text_vadd(text, fmt, args);
    va_end(args);
}
