/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/wait.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "os/yield.h"

#include <time.h>

/* Measured on two cores with time slices of 4 ms. A yield to a rank of the same core takes 0.7 us; waking a thread
 * takes 2.5 us on the same core and up to 40 on another, so ranks do not wake each other. Beside a program that
 * computes, a yield may cost a slice; but the scheduler often puts two ranks on one core then, and a rank that spins
 * for a slice keeps the awaited one from running: spinning for 2 ms made small operations 7 us in the mean where
 * spinning for 0.5 ms and then yielding made them 0.5 to 1.4, and was no faster where ranks are bound to cores. */
enum {
    POLLS_PER_CLOCK = 64,   /* polls between readings of the clock while spinning or yielding */
    SHORT_SPIN_POLLS = 128, /* polls, about ten microseconds */
    FAILED_SPINS_LIMIT = 3, /* threshold of `failures` for short spins */
    FAILED_SPINS_MAX = 8
};

void kl_wait_lengthen(struct kl_poll_wait *wait)
{
    if (wait->sleep_us < KL_WAIT_LONGEST_SLEEP_US) wait->sleep_us *= 2;
    if (wait->sleep_us > KL_WAIT_LONGEST_SLEEP_US) wait->sleep_us = KL_WAIT_LONGEST_SLEEP_US;
}

static _Thread_local struct kl_wait_counts counts;

struct kl_wait_counts kl_wait_counts(void)
{
    return (struct kl_wait_counts){counts.yields, counts.sleeps, &counts};
}

void kl_wait_slept(void)
{
    counts.sleeps++;
}

static void sleep_once(struct kl_poll_wait *wait)
{
    struct timespec t = {.tv_nsec = (long)wait->sleep_us * 1000};

    kl_wait_slept();
    nanosleep(&t, NULL);
    kl_wait_lengthen(wait);
}

/* Has the wait taken this long? The clock is read once in POLLS_PER_CLOCK polls. */
static bool has_taken(struct kl_poll_wait *wait, uint64_t ns)
{
    if (wait->polls % POLLS_PER_CLOCK) return false;
    uint64_t now = kl_now_ns();
    if (!wait->since) wait->since = now;
    return now - wait->since > ns;
}

/* The scheduler may put ranks meant for a core each on one core, especially beside other programs. A rank that spins
 * there keeps the awaited one from running, so that hardly any wait ends by spinning. Then it spins briefly and
 * yields, until spinning ends waits again. */
static _Thread_local struct {
    int failures; /* waits that spinning did not end, less those that it did: 0 to FAILED_SPINS_MAX */
    bool failed;
} spinning;

static bool shares_core(void)
{
    return spinning.failures > FAILED_SPINS_LIMIT;
}

static void begin_spinning(void)
{
    if (!spinning.failed && spinning.failures) spinning.failures--;
    spinning.failed = false;
}

static void end_spinning(struct kl_poll_wait *wait)
{
    wait->spun = wait->polls;
    wait->since = 0;
    spinning.failed = true;
    if (spinning.failures < FAILED_SPINS_MAX) spinning.failures++;
}

/* False: spinning is over. */
static bool spin(struct kl_poll_wait *wait)
{
    if (wait->spun) return false;
    if (!wait->polls) begin_spinning();
    wait->polls++;
    if (shares_core() ? wait->polls >= SHORT_SPIN_POLLS : has_taken(wait, KL_WAIT_SPIN_NS)) {
        end_spinning(wait);
        return false;
    }
    kl_cpu_pause();
    return true;
}

static void yield(struct kl_poll_wait *wait, uint64_t at_most_ns)
{
    wait->polls++;
    counts.yields++;
    kl_yield();
    if (has_taken(wait, at_most_ns)) wait->sleep_us = KL_WAIT_FIRST_SLEEP_US;
}

void kl_wait_pause(struct kl_poll_wait *wait, enum kl_wait_cores cores)
{
    if (wait->sleep_us) {
        wait->polls++;
        sleep_once(wait);
    } else if (cores == KL_CORES_SHARED) {
        yield(wait, KL_WAIT_YIELD_NS);
    } else if (!spin(wait)) {
        yield(wait, KL_WAIT_YIELD_OWN_NS);
    }
}
