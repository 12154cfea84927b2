/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/backoff.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <sched.h>
#include <time.h>

enum {
    YIELDS_PER_LOOK = 32, /* how often the clock is read while yielding */
    /* A peer that is only descheduled is back by then: among many, and where each has a core, which it may share with other programs
     * for some of their time slices. Who slept meanwhile would let it wait in turn. */
    YIELD_FOR_NS = 2000000,
    YIELD_ALONE_FOR_NS = 12000000,
    FIRST_SLEEP_US = 50,
    LONGEST_SLEEP_US = 1000
};

void kl_backoff_grow(struct kl_backoff *backoff)
{
    if (backoff->sleep_us < LONGEST_SLEEP_US) backoff->sleep_us *= 2;
    if (backoff->sleep_us > LONGEST_SLEEP_US) backoff->sleep_us = LONGEST_SLEEP_US;
}

static void sleep_a_little(struct kl_backoff *backoff)
{
    struct timespec t = {.tv_nsec = (long)backoff->sleep_us * 1000};

    nanosleep(&t, NULL);
    kl_backoff_grow(backoff);
}

void kl_backoff_pause(struct kl_backoff *backoff, unsigned spin)
{
    unsigned n = backoff->polls++;

    if (n < spin) {
        kl_cpu_pause();
        return;
    }
    if (backoff->sleep_us) {
        sleep_a_little(backoff);
        return;
    }
    sched_yield();
    if ((n - spin) % YIELDS_PER_LOOK) return;
    uint64_t now = kl_now_ns();
    if (!backoff->since) backoff->since = now;
    if (now - backoff->since > (spin ? YIELD_ALONE_FOR_NS : YIELD_FOR_NS)) backoff->sleep_us = FIRST_SLEEP_US;
}
