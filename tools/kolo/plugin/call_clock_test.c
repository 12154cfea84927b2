/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/call_clock.h"

#include "base/clock.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { RIVALS = 4, SLEEP_US = 30000, WORK_NS = 100000000 };

static atomic_bool stop;

static void *rival(void *none)
{
    (void)none;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) continue;
    return NULL;
}

static void sleep_counts(void **state)
{
    struct kl_call_clock c;
    (void)state;

    kl_call_clock_open(&c);
    kl_call_clock_begin(&c);
    usleep(SLEEP_US);
    assert_true(kl_call_clock_took(&c) >= (SLEEP_US - 1000) * UINT64_C(1000));
    kl_call_clock_close(&c);
}

/* Threads that share this one's only core: their time is not the call's. */
static void other_threads_do_not_count(void **state)
{
    struct kl_call_clock c;
    cpu_set_t before, one;
    pthread_t thread[RIVALS];
    (void)state;

    kl_call_clock_open(&c);
    if (c.account < 0) skip();
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < RIVALS; i++) assert_int_equal(pthread_create(&thread[i], NULL, rival, NULL), 0);

    kl_call_clock_begin(&c);
    const uint64_t begun = kl_now_ns();
    while (kl_now_ns() < begun + WORK_NS) continue;
    const uint64_t wall = kl_now_ns() - begun, took = kl_call_clock_took(&c);

    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < RIVALS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    kl_call_clock_close(&c);
    assert_true(took < wall / 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(sleep_counts),
                                              cmocka_unit_test(other_threads_do_not_count)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
