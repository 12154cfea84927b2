/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ticks.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool kl_ticks_counted;

static struct kl_ticks_scale first; /* constant after kl_ticks_begin */

/* Does the counter run at constant speed, also while the processor sleeps (invariant TSC)? */
static bool counter_is_a_clock(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* Read counter and clock together: the closest pair of several tries, because the thread may be preempted between the
 * two reads. */
static struct kl_ticks_scale look(void)
{
    struct kl_ticks_scale best = {0};
    uint64_t closest = UINT64_MAX;

    if (!kl_ticks_counted) return best;
    for (int i = 0; i < 4; i++) {
        uint64_t before = kl_ticks(), ns = kl_now_ns(), after = kl_ticks();
        if (after - before >= closest) continue;
        closest = after - before;
        best = (struct kl_ticks_scale){.ticks = before + closest / 2, .ns = ns};
    }
    return best;
}

static void begin(void)
{
    kl_ticks_counted = counter_is_a_clock();
    first = look();
}

void kl_ticks_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, begin);
}

struct kl_ticks_scale kl_ticks_scale(void)
{
    struct kl_ticks_scale now = look(), scale = first;

    scale.ns_per_tick = now.ticks > first.ticks ? (double)(now.ns - first.ns) / (double)(now.ticks - first.ticks) : 1.0;
    return scale;
}

uint64_t kl_ticks_ns(const struct kl_ticks_scale *scale, uint64_t ticks)
{
    if (ticks < scale->ticks) return scale->ns;
    return scale->ns + (uint64_t)((double)(ticks - scale->ticks) * scale->ns_per_tick);
}
