/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void kl_text_add_size(struct kl_text *text, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    for (; bytes && bytes % 1024 == 0 && unit < 4; bytes /= 1024) unit++;
    kl_text_add(text, "%" PRId64 " %s", bytes, units[unit]);
}

void kl_text_add_time(struct kl_text *text, double us)
{
    const char *unit = us < 999.5 ? "us" : us < 999500 ? "ms" : "s";
    double value = us < 999.5 ? us : us < 999500 ? us / 1e3 : us / 1e6;

    kl_text_add(text, value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, unit);
}

const char *kl_text_input(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}
