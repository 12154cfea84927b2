/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/backoff.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <sched.h>
#include <time.h>

enum {
    YIELDS_PER_LOOK = 32,   /* how often the clock is read while yielding */
    YIELD_FOR_NS = 2000000, /* a peer that is only descheduled is back by then */
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
    if (now - backoff->since > YIELD_FOR_NS) backoff->sleep_us = FIRST_SLEEP_US;
}
