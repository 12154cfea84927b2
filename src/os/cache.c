/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cache.h"

#include "base/cpuset.h"
#include "os/sysfs.h"

#include <stdio.h>
#include <stdlib.h>

enum { INDEXES = 16, TEXT = 32, LIST = 4096 };

/* Parses "32768K", or with M or G, which the kernel may use in future. 0: not a size. */
static size_t parse_size(const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

    return *text >= '0' && *text <= '9' && n < 1ull << 32 && (!*end || (shift && !end[1])) ? (size_t)n << shift : 0;
}

static long level_of(const char *dir, int index)
{
    char name[TEXT], text[TEXT];

    snprintf(name, sizeof name, "index%d/level", index);
    return kl_sysfs_text(dir, name, text, sizeof text) ? strtol(text, NULL, 10) : 0;
}

static size_t size_of(const char *dir, int index)
{
    char name[TEXT], text[TEXT];

    snprintf(name, sizeof name, "index%d/size", index);
    return kl_sysfs_text(dir, name, text, sizeof text) ? parse_size(text) : 0;
}

static int count_cpus(const char *dir, int index)
{
    char name[TEXT], text[LIST];
    struct kl_cpuset cpus;

    snprintf(name, sizeof name, "index%d/shared_cpu_list", index);
    if (!kl_sysfs_text(dir, name, text, sizeof text) || !kl_cpuset_parse_list(text, &cpus)) return 1;
    return kl_cpuset_count(&cpus) ? kl_cpuset_count(&cpus) : 1;
}

struct kl_cache kl_cache_of(const char *dir, long level)
{
    struct kl_cache found = {.cpus = 1};
    long last = 0;

    for (int i = 0; i < INDEXES; i++) {
        const long at = level_of(dir, i);
        if (at <= last || (level != KL_CACHE_LAST && at != level) || !size_of(dir, i)) continue;
        last = at;
        found = (struct kl_cache){size_of(dir, i), count_cpus(dir, i)};
    }
    return found;
}
