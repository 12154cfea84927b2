/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pagemap.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ASKED_ANEW = 1024 }; /* queries until the cache is cleared */

#define PRESENT ((uint64_t)1 << 63)
#define SHARED  ((uint64_t)1 << 61)

/* Opens the file each time: a kept descriptor would stand for the process that opened it, also in a forked child.
 * False: the kernel does not report it. */
static bool ask(uintptr_t page, uint64_t *entry)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    if (fd < 0) return false;
    const bool told = pread(fd, entry, sizeof *entry, (off_t)(page * sizeof *entry)) == sizeof *entry;
    close(fd);
    return told;
}

bool kl_pagemap_init(struct kl_pagemap *map)
{
    uint64_t entry;

    *map = (struct kl_pagemap){.bits = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE))};
    return ask((uintptr_t)&entry >> map->bits, &entry);
}

static bool is_own_page(struct kl_pagemap *map, uintptr_t page)
{
    uintptr_t *known = &map->own[page % KL_PAGEMAP_KNOWN];
    uint64_t entry;

    if (*known == page) return true;
    if (!ask(page, &entry) || !(entry & PRESENT) || entry & SHARED) return false;
    *known = page;
    return true;
}

bool kl_pagemap_is_own(struct kl_pagemap *map, const void *at, size_t bytes)
{
    const uintptr_t first = (uintptr_t)at >> map->bits, last = ((uintptr_t)at + (bytes ? bytes - 1 : 0)) >> map->bits;

    if (!(++map->asked % ASKED_ANEW)) memset(map->own, 0, sizeof map->own);
    return is_own_page(map, first) && (last == first || is_own_page(map, last));
}
