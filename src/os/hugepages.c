/* SPDX-License-Identifier: Apache-2.0 */
#include "os/hugepages.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/chaos.h"
#include "os/sysfs.h"

#include <string.h>
#include <sys/mman.h>

#define NS_PER_MS ((uint64_t)1000000)
#define MOST_NS   ((int64_t)(KL_HUGEPAGES_MOST_MS * NS_PER_MS))

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

enum { USES_BITS = 8, USES_MASK = (1 << USES_BITS) - 1 };

/* ---- the system ---- */

static bool collapse(void *at, size_t bytes)
{
    return !madvise(at, bytes, MADV_COLLAPSE);
}

struct kl_hugepages_system kl_hugepages_system_of(const char *dir)
{
    const struct kl_hugepages_system none = {0};
    struct kl_hugepages_system some = {.collapse = collapse, .now_ns = kl_now_ns};
    char text[64];

    if (!kl_sysfs_text(dir, "enabled", text, sizeof text) || strstr(text, "[never]")) return none;
    if (!kl_sysfs_text(dir, "hpage_pmd_size", text, sizeof text)) return none;
    some.block_bytes = strtoull(text, NULL, 10);
    return some.block_bytes & (some.block_bytes - 1) ? none : some;
}

ncclResult_t kl_hugepages_create(const struct kl_hugepages_system *system, struct kl_hugepages **pages)
{
    *pages = NULL;
    if (!system->block_bytes) return ncclSuccess;
    *pages = kl_chaos_calloc(1, sizeof **pages);
    if (!*pages) return KL_NOMEM("what is known of huge pages");
    (*pages)->system = *system;
    (*pages)->credit_ns = MOST_NS;
    (*pages)->seen_ns = system->now_ns();
    return ncclSuccess;
}

void kl_hugepages_free(struct kl_hugepages *pages)
{
    free(pages);
}

/* ---- blocks ---- */

/* Once for an operation that could spend some. */
static void earn(struct kl_hugepages *p)
{
    if (p->earned) return;
    const uint64_t now = p->system.now_ns();
    p->credit_ns += (int64_t)((now - p->seen_ns) / KL_HUGEPAGES_SHARE);
    if (p->credit_ns > MOST_NS) p->credit_ns = MOST_NS;
    p->seen_ns = now;
    p->earned = true;
}

static void ask_for(struct kl_hugepages *p, uintptr_t block)
{
    const struct kl_hugepages_system *s = &p->system;
    const uint64_t began = s->now_ns();
    const bool done = s->collapse((void *)(block * s->block_bytes), s->block_bytes);
    const uint64_t took = s->now_ns() - began;

    p->credit_ns -= (int64_t)took;
    p->failures = done && took < KL_HUGEPAGES_SLOW_MS * NS_PER_MS ? 0 : p->failures + 1;
}

/* The count goes on, and comes round: the address may have got other memory by then. */
static void use_block(struct kl_hugepages *p, uintptr_t block)
{
    uint64_t *known = &p->blocks[block % KL_HUGEPAGES_BLOCKS];
    const uint64_t number = (uint64_t)block << USES_BITS;
    const unsigned uses = (*known & ~(uint64_t)USES_MASK) == number ? *known & USES_MASK : 0;

    if (uses == 1) {
        earn(p);
        if (p->credit_ns <= 0) return; /* next time */
        ask_for(p, block);
    }
    *known = number | ((uses + 1) & USES_MASK);
}

void kl_hugepages_begin(struct kl_hugepages *p)
{
    p->earned = false;
}

void kl_hugepages_use(struct kl_hugepages *p, const void *at, size_t bytes)
{
    const size_t size = p->system.block_bytes;

    if (bytes < size) return;
    const uintptr_t first = ((uintptr_t)at + size - 1) / size, end = ((uintptr_t)at + bytes) / size;
    for (uintptr_t b = first; b < end && p->failures < KL_HUGEPAGES_FAILURES; b++) use_block(p, b);
}
