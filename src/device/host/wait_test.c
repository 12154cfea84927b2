/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/wait.h"

#include "base/clock.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- override the C library: the policy's clock, yields and sleeps ---- */

static struct {
    bool on;
    uint64_t now_ns;
    unsigned yields, sleeps;
} fake;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!fake.on) return (int)syscall(SYS_clock_gettime, clock, t);
    *t = (struct timespec){.tv_sec = (time_t)(fake.now_ns / 1000000000), .tv_nsec = (long)(fake.now_ns % 1000000000)};
    return 0;
}

int sched_yield(void)
{
    if (fake.on) fake.yields++;
    return 0;
}

int nanosleep(const struct timespec *t, struct timespec *rest)
{
    if (!fake.on) return (int)syscall(SYS_nanosleep, t, rest);
    fake.sleeps++;
    fake.now_ns += (uint64_t)t->tv_nsec;
    return 0;
}

enum { POLL_NS = 100 };

static void pause_once(struct kl_poll_wait *wait, enum kl_wait_cores cores)
{
    kl_wait_pause(wait, cores);
    fake.now_ns += POLL_NS;
}

/* Duration of a wait until it first yields or sleeps, ns. */
static uint64_t spins_for(struct kl_poll_wait *wait)
{
    const uint64_t began = fake.now_ns;
    const unsigned yields = fake.yields, sleeps = fake.sleeps;

    *wait = KL_WAIT_START;
    while (fake.yields == yields && fake.sleeps == sleeps) pause_once(wait, KL_CORES_OWN);
    return fake.now_ns - began;
}

enum { WAITS = 12, FEW_WAITS = 3, SHORT_NS = KL_WAIT_SPIN_NS / 10 };

/* A rank with a core of its own spins for as long as a running rank may take; then it yields, and finally sleeps. */
static void own_core_spins_then_yields_then_sleeps(void **state)
{
    struct kl_poll_wait wait;

    (void)state;
    fake.on = true;
    const uint64_t ns = spins_for(&wait), began = fake.now_ns;
    assert_true(ns >= KL_WAIT_SPIN_NS && ns < KL_WAIT_SPIN_NS + KL_WAIT_SPIN_NS / 10);
    while (!fake.sleeps) pause_once(&wait, KL_CORES_OWN);
    assert_in_range(fake.now_ns - began, KL_WAIT_YIELD_OWN_NS, 2 * KL_WAIT_YIELD_OWN_NS);
    for (int i = 0; i < 8; i++) pause_once(&wait, KL_CORES_OWN);
    assert_int_equal(fake.sleeps, 9);
    assert_int_equal(wait.sleep_us, KL_WAIT_LONGEST_SLEEP_US);
    assert_int_equal(kl_wait_counts().sleeps, fake.sleeps);
    assert_int_equal(kl_wait_counts().yields, fake.yields);
    kl_wait_reset(&wait);
    kl_wait_pause(&wait, KL_CORES_OWN);
    fake.on = false;
}

static void shared_core_yields_then_sleeps(void **state)
{
    struct kl_poll_wait wait = KL_WAIT_START;
    const unsigned sleeps = fake.sleeps;

    (void)state;
    fake.on = true;
    const uint64_t began = fake.now_ns;
    while (!wait.sleep_us) pause_once(&wait, KL_CORES_SHARED);
    assert_in_range(fake.now_ns - began, KL_WAIT_YIELD_NS, 2 * KL_WAIT_YIELD_NS);
    assert_int_equal(fake.sleeps, sleeps);
    pause_once(&wait, KL_CORES_SHARED);
    assert_int_equal(fake.sleeps, sleeps + 1);
    fake.on = false;
}

/* A rank that shares its core with the awaited one soon yields early, until spinning helps again. */
static void spinning_in_vain_is_kept_short(void **state)
{
    struct kl_poll_wait wait;

    (void)state;
    fake.on = true;
    for (int i = 0; i < WAITS; i++) kl_wait_pause(&KL_WAIT_START, KL_CORES_OWN);
    for (int i = 0; i < FEW_WAITS; i++) assert_true(spins_for(&wait) >= KL_WAIT_SPIN_NS);
    for (int i = 0; i < WAITS; i++) (void)spins_for(&wait);
    assert_true(spins_for(&wait) < SHORT_NS);
    for (int i = 0; i < WAITS; i++) kl_wait_pause(&KL_WAIT_START, KL_CORES_OWN);
    assert_true(spins_for(&wait) >= KL_WAIT_SPIN_NS);
    fake.on = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_core_spins_then_yields_then_sleeps),
        cmocka_unit_test(shared_core_yields_then_sleeps),
        cmocka_unit_test(spinning_in_vain_is_kept_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
