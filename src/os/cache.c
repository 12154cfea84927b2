/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cache.h"

#include "os/sysfs.h"

#include <stdio.h>
#include <stdlib.h>

enum { INDEXES = 16, TEXT = 32 };

/* "32768K", and M and G, as the kernel may come to write them. 0: it is no size. */
static size_t parse_size(const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

    return *text >= '0' && *text <= '9' && n < 1ull << 32 && (!*end || (shift && !end[1])) ? (size_t)n << shift : 0;
}

size_t kl_cache_last_bytes(const char *dir)
{
    char name[TEXT], text[TEXT];
    long last = 0;
    size_t bytes = 0;

    for (int i = 0; i < INDEXES; i++) {
        snprintf(name, sizeof name, "index%d/level", i);
        if (!kl_sysfs_text(dir, name, text, sizeof text)) continue;
        const long level = strtol(text, NULL, 10);
        snprintf(name, sizeof name, "index%d/size", i);
        if (level <= last || !kl_sysfs_text(dir, name, text, sizeof text) || !parse_size(text)) continue;
        last = level;
        bytes = parse_size(text);
    }
    return bytes;
}
