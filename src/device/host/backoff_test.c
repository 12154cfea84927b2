/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/backoff.h"

#include "tests/kolo_test.h"

#include <pthread.h>

/* Of a wait that goes on until it yields, and looks at the clock there. */
static unsigned polls_to_yield(void)
{
    struct kl_backoff wait = KL_BACKOFF_START;

    while (!wait.since) kl_backoff_pause(&wait, KL_SPIN_POLLS);
    return wait.polls;
}

enum { WAITS = 12, FEW_WAITS = 3, SHORT = KL_SPIN_POLLS / 10 };

/* Polls of waits: of the first ones, after many in vain, and after many that spinning has ended. */
struct spun {
    unsigned first[FEW_WAITS], in_vain, of_use;
};

static void *spin_in_vain(void *arg)
{
    struct spun *spun = arg;

    for (int i = 0; i < FEW_WAITS; i++) spun->first[i] = polls_to_yield();
    for (int i = 0; i < WAITS; i++) (void)polls_to_yield();
    spun->in_vain = polls_to_yield();
    for (int i = 0; i < WAITS; i++) kl_backoff_pause(&KL_BACKOFF_START, KL_SPIN_POLLS);
    spun->of_use = polls_to_yield();
    return NULL;
}

/* Who shares a core with the one it waits for soon yields early, until spinning helps again. */
static void spinning_in_vain_is_kept_short(void **state)
{
    struct spun spun;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, spin_in_vain, &spun), 0);
    pthread_join(t, NULL);
    for (int i = 0; i < FEW_WAITS; i++) assert_true(spun.first[i] > KL_SPIN_POLLS);
    assert_true(spun.in_vain < SHORT);
    assert_true(spun.of_use > KL_SPIN_POLLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spinning_in_vain_is_kept_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
