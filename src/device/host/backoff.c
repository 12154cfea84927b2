/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/backoff.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "os/yield.h"

#include <time.h>

enum {
    YIELDS_PER_LOOK = 32, /* how often the clock is read while yielding */
    /* A peer that is only descheduled is back by then: among many, and where each has a core, which it may share with other programs
     * for some of their time slices. Who slept meanwhile would let it wait in turn. */
    YIELD_FOR_NS = 2000000,
    YIELD_ALONE_FOR_NS = 12000000,
    SPIN_IN_VAIN = 100, /* polls, about ten microseconds */
    IN_VAIN = 3,        /* waits that spinning did not end, more than such that it did */
    MOST_IN_VAIN = 8,
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

/*
 * The scheduler may put ranks that were to have a core each on one, most of all beside other programs. Whoever spins there keeps the one it waits for from
 * running: then nearly all waits end by a yield. Spinning is kept short until it helps again.
 */
static _Thread_local struct {
    int vain; /* waits, less those that spinning has ended: 0 to MOST_IN_VAIN */
    bool yielded;
} spinning;

/* How long a wait spins. Now it is known how the one before has ended. */
static unsigned begin_spinning(unsigned spin)
{
    if (!spinning.yielded && spinning.vain) spinning.vain--;
    spinning.yielded = false;
    return spinning.vain > IN_VAIN && spin > SPIN_IN_VAIN ? SPIN_IN_VAIN : spin;
}

static void end_spinning(void)
{
    spinning.yielded = true;
    if (spinning.vain < MOST_IN_VAIN) spinning.vain++;
}

void kl_backoff_pause(struct kl_backoff *backoff, unsigned spin)
{
    unsigned n = backoff->polls++;

    if (!n && spin) backoff->spin = begin_spinning(spin);
    if (n < backoff->spin) {
        kl_cpu_pause();
        return;
    }
    if (n == backoff->spin && spin) end_spinning();
    if (backoff->sleep_us) {
        sleep_a_little(backoff);
        return;
    }
    kl_yield();
    if ((n - backoff->spin) % YIELDS_PER_LOOK) return;
    uint64_t now = kl_now_ns();
    if (!backoff->since) backoff->since = now;
    if (now - backoff->since > (spin ? YIELD_ALONE_FOR_NS : YIELD_FOR_NS)) backoff->sleep_us = FIRST_SLEEP_US;
}
