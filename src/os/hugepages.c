/* SPDX-License-Identifier: Apache-2.0 */
#include "os/hugepages.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/chaos.h"
#include "os/sysfs.h"

#include <string.h>
#include <sys/mman.h>

#define NS_PER_MS ((uint64_t)1000000)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

enum { SMOOTHING = 4 }; /* divisor of the moving average of a block's time */
/* The most time credited per byte: an operation that takes longer has waited for other ranks. */
enum { MOST_NS_PER_BYTE = 1 };
enum { USES_BITS = 8, USES_MASK = (1 << USES_BITS) - 1 };

/* ---- the system ---- */

static uint64_t thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool collapse(void *at, size_t bytes)
{
    return !madvise(at, bytes, MADV_COLLAPSE);
}

struct kl_hugepages_system kl_hugepages_system_of(const char *dir)
{
    const struct kl_hugepages_system none = {0};
    struct kl_hugepages_system some = {.collapse = collapse, .now_ns = kl_now_ns, .cpu_ns = thread_ns};
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
    if (!*pages) return KL_NOMEM("the table of huge pages");
    (*pages)->system = *system;
    (*pages)->expected_ns = (int64_t)KL_HUGEPAGES_EXPECTED_US * 1000;
    return ncclSuccess;
}

void kl_hugepages_free(struct kl_hugepages *pages)
{
    free(pages);
}

/* ---- blocks ---- */

static void ask_for(struct kl_hugepages *p, uintptr_t block)
{
    const struct kl_hugepages_system *s = &p->system;
    const uint64_t began = s->now_ns(), worked = s->cpu_ns();
    const bool done = s->collapse((void *)(block * s->block_bytes), s->block_bytes);
    const uint64_t took = s->cpu_ns() - worked;

    p->credit_ns -= (int64_t)took;
    p->spent_ns += (int64_t)(s->now_ns() - began);
    p->expected_ns += ((int64_t)took - p->expected_ns) / SMOOTHING;
    p->failures = done && took < KL_HUGEPAGES_SLOW_MS * NS_PER_MS ? 0 : p->failures + 1;
}

/* The count wraps around, so that a block is collapsed again: by then the address may be of other memory. */
static void use_block(struct kl_hugepages *p, uintptr_t block)
{
    uint64_t *known = &p->blocks[block % KL_HUGEPAGES_BLOCKS];
    const uint64_t number = (uint64_t)block << USES_BITS;
    const unsigned uses = (*known & ~(uint64_t)USES_MASK) == number ? *known & USES_MASK : 0;

    if (uses == 1) {
        if (p->credit_ns < p->expected_ns) return; /* later, when there is credit */
        ask_for(p, block);
    }
    *known = number | ((uses + 1) & USES_MASK);
}

void kl_hugepages_begin(struct kl_hugepages *p)
{
    p->spent_ns = 0;
    p->bytes = 0;
}

void kl_hugepages_use(struct kl_hugepages *p, const void *at, size_t bytes)
{
    const size_t size = p->system.block_bytes;

    if (bytes < size) return;
    const uintptr_t first = ((uintptr_t)at + size - 1) / size, last = ((uintptr_t)at + bytes) / size;
    const uintptr_t end = last - first < KL_HUGEPAGES_BLOCKS ? last : first + KL_HUGEPAGES_BLOCKS;
    if (!p->bytes) p->began_ns = p->system.now_ns();
    p->bytes += (end - first) * size;
    for (uintptr_t b = first; b < end && p->failures < KL_HUGEPAGES_FAILURES; b++) use_block(p, b);
}

/* Unspent credit is kept, up to the expected time of a block. */
void kl_hugepages_end(struct kl_hugepages *p)
{
    if (!p->bytes) return;
    int64_t took = (int64_t)(p->system.now_ns() - p->began_ns) - p->spent_ns;
    const int64_t most = (int64_t)p->bytes * MOST_NS_PER_BYTE;

    if (took > most) took = most;
    const int64_t earned = took / KL_HUGEPAGES_SHARE, kept = earned > p->expected_ns ? earned : p->expected_ns;
    p->credit_ns += earned;
    if (p->credit_ns > kept) p->credit_ns = kept;
}
