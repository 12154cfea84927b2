/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/call_times.h"

enum { BITS = 3, EACH = 1 << BITS };

static int class_of(uint64_t ns)
{
    if (ns < EACH) return (int)ns;
    const int exponent = 63 - __builtin_clzll(ns);
    const int class = (exponent - BITS + 1) * EACH + (int)(ns >> (exponent - BITS) & (EACH - 1));

    return class < KL_CALL_CLASSES ? class : KL_CALL_CLASSES - 1;
}

/* The longest time of a class. */
static uint64_t end_of(int class)
{
    if (class < EACH) return (uint64_t) class;
    const int shift = class / EACH - 1;

    return ((uint64_t)(EACH + class % EACH + 1) << shift) - 1;
}

void kl_call_times_add(struct kl_call_times *t, uint64_t ns)
{
    t->calls++;
    t->sum_ns += ns;
    if (ns > t->most_ns) t->most_ns = ns;
    t->count[class_of(ns)]++;
}

uint64_t kl_call_times_quantile(const struct kl_call_times *t, double share)
{
    const double wanted = share * (double)t->calls;
    uint64_t passed = 0;

    for (int i = 0; i < KL_CALL_CLASSES; i++) {
        passed += t->count[i];
        if (!t->count[i] || (double)passed < wanted) continue;
        return end_of(i) < t->most_ns ? end_of(i) : t->most_ns;
    }
    return t->most_ns;
}
